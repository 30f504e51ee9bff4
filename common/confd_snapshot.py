"""What ``gantry-confd`` knows of a cluster: the coordinator writes it, nodes keep it as a file.

Names are those of Ganeti's configuration, since clients ask for parts of it. Only what is named
here is published: there is no field for parameters of guests or of operating systems, which may
hold passwords, nor for what the ends of a mirrored disk prove themselves with.
"""

import zlib
from typing import Any

from common.errors import InvalidRequest
from common.messages import Report, from_json, to_json

CONFIG_VERSION = 3_000_000  # of Ganeti's configuration whose names these are; clients ask for it
LARGEST_BYTES = 256 << 20  # when it is unpacked: far more than the largest cluster has
KEY_FILE, SNAPSHOT_FILE = "hmac.key", "snapshot"


class PublishedObject(Report):
    """What all have."""

    uuid: str
    name: str
    serial_no: int
    ctime: float
    mtime: float
    tags: tuple[str, ...]


class PublishedCluster(PublishedObject):
    cluster_name: str
    master_node: str  # UUID
    candidate_pool_size: int
    enabled_hypervisors: tuple[str, ...]
    enabled_disk_templates: tuple[str, ...]
    mac_prefix: str
    volume_group_name: str
    file_storage_dir: str
    shared_file_storage_dir: str
    nicparams: dict[str, str]  # those that count where nothing else is said
    master_ip: str = ""  # which goes with the mastership; "": none does


class PublishedNode(PublishedObject):
    primary_ip: str
    secondary_ip: str
    group: str
    master_candidate: bool
    offline: bool
    drained: bool
    master_capable: bool
    vm_capable: bool


class PublishedGroup(PublishedObject):
    alloc_policy: str


class PublishedNetwork(PublishedObject):
    network: str
    gateway: str
    network6: str
    gateway6: str


class PublishedNic(Report):
    uuid: str
    name: str
    mac: str
    ip: str
    network: str
    nicparams: dict[str, str]  # as they count where the instance is


class PublishedDisk(Report):
    uuid: str
    name: str
    iv_name: str  # "disk/0"
    dev_type: str
    size: int
    mode: str
    logical_id: tuple[Any, ...]  # of a mirrored one without its secret
    nodes: tuple[str, ...]
    minors: dict[str, int]  # by node, of a mirrored one


class PublishedInstance(PublishedObject):
    primary_node: str
    secondary_nodes: tuple[str, ...]
    admin_state: str
    hypervisor: str
    os: str
    disk_template: str
    disks: tuple[PublishedDisk, ...]
    nics: tuple[PublishedNic, ...]
    forthcoming: bool = False  # it is only reserved, and no node has anything of it


class Snapshot(Report):
    """A configuration; objects by their UUIDs.

    ``serial_no`` is of the commit that it was made after: of two, the one with the higher is newer.
    """

    version: int
    serial_no: int
    cluster: PublishedCluster
    nodes: dict[str, PublishedNode]
    nodegroups: dict[str, PublishedGroup]
    networks: dict[str, PublishedNetwork]
    instances: dict[str, PublishedInstance]


def pack(snapshot: Snapshot) -> bytes:
    return zlib.compress(to_json(snapshot), 1)


def unpack(data: bytes) -> Snapshot:
    """Read what ``pack`` has made.

    Raises:
        InvalidRequest: it is damaged.
    """
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(data, LARGEST_BYTES)
    except zlib.error as error:
        raise InvalidRequest(f"The snapshot of the configuration is damaged: {error}.") from error
    if not unpacking.eof:
        raise InvalidRequest("The snapshot of the configuration is cut off, or far too large.")
    return from_json(text, Snapshot, what="the snapshot of the configuration")
