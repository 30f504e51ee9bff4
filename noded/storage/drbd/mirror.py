"""This node's end of a mirrored disk, read from what it was told of the disk."""

from dataclasses import dataclass, field, replace

from msgspec import structs

from common.errors import InvalidRequest
from common.messages import from_builtins
from common.model.backing import META_SIZE, DrbdBacking
from common.model.disk_parameters import DrbdParameters
from common.names import DiskId, MiB, NodeId, is_uuid
from common.noderpc.disks import DiskSpec
from common.units import format_mib
from noded.storage.drbd.module import Connection, Endpoint
from noded.storage.lvm.volumes import NewVolume, Volume

OURS = "gantry-"
PORTS = range(1024, 2**16)
SECRET = 64  # characters at most: the module's own limit
# Metadata of a former disk would be believed, and begins with a superblock. Behind that it is bits,
# which DRBD writes before it reads them; no guest sees any of it.
SUPERBLOCK = MiB(1)
LARGEST = MiB((META_SIZE - 1) * 32 * 1024)  # a bit for each 4 KiB, and some more


@dataclass(frozen=True, slots=True)
class Mirror:
    """What this node is to have of a mirrored disk."""

    disk: DiskSpec
    resource: str
    minor: int
    data: Volume
    meta: Volume
    number: int  # which of its two nodes this one is
    connection: Connection | None  # None: there is no other copy
    secret: str = field(repr=False)
    parameters: DrbdParameters

    @property
    def name(self) -> str:
        """Return what it is called in messages."""
        return self.data.name

    @property
    def volumes(self) -> tuple[Volume, Volume]:
        return self.data, self.meta

    @property
    def set_aside(self) -> tuple[Volume, Volume]:
        """Return what its volumes are called while others are put in their place."""
        data, meta = (
            replace(volume, place=structs.replace(volume.place, name=f"{volume.place.name}.aside"))
            for volume in self.volumes
        )
        return data, meta

    @property
    def new_volumes(self) -> tuple[NewVolume, NewVolume]:
        """Return its volumes as they are made."""
        return (
            NewVolume(volume=self.data, size=self.disk.size, stripes=self.parameters.data_stripes),
            NewVolume(
                volume=self.meta,
                size=META_SIZE,
                stripes=self.parameters.meta_stripes,
                zeros=SUPERBLOCK,
                tells_of=self.data,  # of other data it might say that it is a good copy
            ),
        )


def resource_of(disk: str) -> str:
    """Return what the module calls a disk; both nodes call it so."""
    return f"{OURS}{disk}"


def disk_of(resource: str) -> DiskId | None:
    """Return whose device has a name; None if it is none of ours."""
    disk = resource.removeprefix(OURS)
    return DiskId(disk) if disk != resource and is_uuid(disk) else None


def read_mirror(disk: DiskSpec, me: NodeId) -> Mirror:
    """Read what ``me`` has of a disk.

    Raises:
        InvalidRequest: it is no mirrored disk, or none of this node's, or makes no sense.
    """
    backing: object = disk.backing
    if not isinstance(backing, DrbdBacking):
        raise InvalidRequest("This is no mirrored disk.", disk=disk.id)
    if not is_uuid(disk.id):
        raise InvalidRequest(f"“{disk.id}” is no disk.", disk=disk.id)
    own = [end for end in disk.ends if end.node == me]
    peers = [end for end in disk.ends if end.node != me]
    if len(own) != 1 or len(peers) > 1:
        raise InvalidRequest(
            f"The disk {disk.id} has no copy on this node, or more than one elsewhere.",
            disk=disk.id,
        )
    if backing.port not in PORTS or not 0 < len(backing.secret) <= SECRET:
        raise InvalidRequest(f"The disk {disk.id} lacks a port or a secret.", disk=disk.id)
    if disk.size > LARGEST:
        raise InvalidRequest(
            f"A mirrored disk has at most {format_mib(LARGEST)}, not {format_mib(disk.size)}.",
            disk=disk.id,
        )
    resource, number = resource_of(disk.id), disk.ends.index(own[0])
    here = Endpoint(own[0].address, backing.port)
    connections = [
        Connection(resource, here, Endpoint(peer.address, backing.port), number) for peer in peers
    ]
    return Mirror(
        disk=disk,
        resource=resource,
        minor=own[0].minor,
        data=Volume(backing.data, disk.id, disk.instance),
        meta=Volume(backing.meta, disk.id, disk.instance),
        number=number,
        connection=connections[0] if connections else None,
        secret=backing.secret,
        parameters=from_builtins(
            disk.parameters, DrbdParameters, what=f"the parameters of {disk.id}"
        ),
    )
