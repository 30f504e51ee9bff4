"""Disks of a new instance that are there already: Ganeti's ``--disk N:adopt=…``."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest, NotFound
from common.model.backing import BlockBacking
from common.model.disk import Disk
from common.model.node import Node, NodeRef
from common.names import DiskId, InstanceId, MiB
from common.noderpc.disks import Disks, DiskSpec, VolumeListing
from common.units import format_mib
from coordinator.disks.exclusive import is_exclusive
from coordinator.disks.kind import DiskKind
from coordinator.disks.volume_groups import found_in, group_for, pool_in
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.devices import DiskRequest
from coordinator.operations.step import Step, act


class Found(NamedTuple):
    """What is to become a disk, as its node has it."""

    size: MiB
    thin_pool: str = ""
    spindles: int | None = None  # physical volumes that are its own, where storage is exclusive


def check_adoption(kind: DiskKind, disks: Sequence[DiskRequest], *, node: str | None) -> None:
    """Refuse to adopt some disks only, one twice, or on a node that was not named.

    Raises:
        InvalidRequest: says what to give.
    """
    names = [(disk.vg, disk.adopt) for disk in disks if disk.adopt]
    if not names:
        return
    if len(names) < len(disks):
        raise InvalidRequest("Either all disks of an instance are adopted, or none.")
    if len({*names}) < len(names):
        raise InvalidRequest("Two disks cannot be made of one that is there.")
    if not node and not kind.traits.is_external:
        raise InvalidRequest("Name the node that has what is adopted, with -n.")
    if not node and not all(disk.size_mib for disk in disks):
        raise InvalidRequest("Tell the sizes of what is adopted, or name the node with -n.")


def check_made_anew(kind: DiskKind, disk: DiskRequest) -> None:
    """Refuse to adopt a volume where an instance is there already, or a device of unknown size.

    Raises:
        InvalidRequest: says so.
    """
    if disk.adopt and kind.traits.is_in_volume_group:
        raise InvalidRequest("Volumes are adopted when an instance is made, and not later.")
    if disk.adopt and not disk.size_mib:
        raise InvalidRequest(f"Tell how large {disk.adopt} is, as in size=10G.")


async def find_adopted(
    cluster: Cluster, kind: DiskKind, node: Node, disks: Sequence[DiskRequest]
) -> tuple[Found, ...]:
    """Return what disks adopt, one each; nothing if they are made anew.

    Raises:
        NotFound: something is not there.
        Conflict: it is somebody's, in use, damaged, of another size than was told, or not alone on
            its physical volumes, where storage is exclusive.
    """
    if not any(disk.adopt for disk in disks):
        return ()
    if not kind.traits.is_in_volume_group:
        return tuple([await _device(cluster, node, disk) for disk in disks])
    groups = [group_for(cluster.config.cluster, kind.template, disk.vg) for disk in disks]
    pools = tuple(pool for group in dict.fromkeys(groups) if (pool := pool_in(group)))
    listed = await cluster.call(Disks, node).volumes(pools=pools)
    there = {(each.group, each.name): each for each in listed}
    pairs = [(group, disk.adopt) for group, disk in zip(groups, disks, strict=True)]
    found = tuple(
        _volume(node, disk, group, there.get((group, disk.adopt)))
        for (group, _), disk in zip(pairs, disks, strict=True)
    )
    if not is_exclusive(cluster.config, node.uuid):
        return found
    _check_apart(node, {there[pair] for pair in pairs}, listed)
    spindles = (len(there[pair].devices) for pair in pairs)
    return tuple(each._replace(spindles=own) for each, own in zip(found, spindles, strict=True))


def sized(disks: Sequence[DiskRequest], found: Sequence[Found]) -> tuple[DiskRequest, ...]:
    """Return requests for disks with the sizes that these have."""
    if not found:
        return tuple(disks)
    return tuple(replace(d, size=each.size) for d, each in zip(disks, found, strict=True))


def where_found(disks: Sequence[Disk], found: Sequence[Found]) -> tuple[Disk, ...]:
    """Return disks with the thin pools and physical volumes of what they adopt."""

    def placed(disk: Disk, there: Found) -> Disk:
        spindles = disk.spindles if there.spindles is None else there.spindles
        return replace(found_in(disk, there.thin_pool), spindles=spindles)

    pairs = zip(disks, found, strict=True) if found else ()
    return tuple(placed(disk, there) for disk, there in pairs) or tuple(disks)


def adopt_disk(cluster: Cluster, index: int, disk: DiskSpec, name: str, node: NodeRef) -> Step:
    """Make what is there a disk; undone, it is what it was, with what is on it."""
    disks = cluster.call(Disks, node)
    return act(
        f"adopt {name} as disk {index} on {node}",
        lambda: disks.adopt(disk=disk, name=name),
        undo=lambda: disks.give_back(disk=disk, name=name),
    )


def _volume(node: Node, disk: DiskRequest, group: str, there: VolumeListing | None) -> Found:
    name = f"{group}/{disk.adopt}"
    if there is None:
        raise NotFound(f"There is no volume {name} on {node.name}.", volume=name)
    if there.disk:
        raise Conflict(f"The volume {name} is one of the disk {there.disk} already.", volume=name)
    if there.is_open:
        raise Conflict(f"The volume {name} on {node.name} is in use; unmount it first.")
    if there.problem:
        raise Conflict(f"The volume {name} on {node.name} cannot be used: {there.problem}.")
    return _checked(disk, name, Found(there.size, there.thin_pool))


def _check_apart(
    node: Node, adopted: AbstractSet[VolumeListing], every: Iterable[VolumeListing]
) -> None:
    """Refuse volumes that share physical volumes with others than one another, or are thin."""
    for other in every:
        for each in adopted if other not in adopted else ():
            if shared := sorted({*each.devices} & {*other.devices}):
                raise Conflict(
                    f"The volume {each.group}/{each.name} shares {', '.join(shared)} with "
                    f"{other.group}/{other.name}, and the storage of {node.name} is exclusive."
                )
    for each in adopted:
        if each.thin_pool:
            raise Conflict(
                f"The volume {each.group}/{each.name} is in the thin pool {each.thin_pool}, which "
                f"all share, and the storage of {node.name} is exclusive."
            )


async def _device(cluster: Cluster, node: Node, disk: DiskRequest) -> Found:
    asked = DiskSpec(
        id=DiskId(cluster.new_uuid()),
        instance=InstanceId(cluster.new_uuid()),
        size=MiB(1),
        backing=BlockBacking(device=disk.adopt),
    )
    (there,) = await cluster.call(Disks, node).find(disks=(asked,))
    if there is None:
        raise NotFound(f"There is no device {disk.adopt} on {node.name}.", path=disk.adopt)
    return _checked(disk, disk.adopt, Found(there.size))


def _checked(disk: DiskRequest, name: str, found: Found) -> Found:
    if disk.size_mib not in (0, found.size):
        raise Conflict(
            f"{name} has {format_mib(found.size)}, not {format_mib(disk.size_mib)}; leave the size "
            "out, and it is as it is.",
            size_mib=found.size,
        )
    return found
