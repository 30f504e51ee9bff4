"""Instances on two of three nodes, whose mirrored disks files stand for."""

from common.model.backing import FileBacking
from common.model.cluster import Cluster as ClusterObject
from common.model.disk import Disk
from common.model.group import Group
from common.model.instance import AdminState, Instance
from common.model.node import Node
from common.model.stored import Stored
from common.model.template import DiskTemplate
from common.names import (
    ClusterId,
    ClusterName,
    DiskId,
    GroupId,
    GroupName,
    InstanceId,
    InstanceName,
    MiB,
    NodeId,
    NodeName,
)
from common.noderpc.facts import NodeFacts, StorageReport
from coordinator.disks.directory import DirectoryKind
from coordinator.operations.placement.promises import PlannedInstance
from coordinator.state.config import Config
from coordinator.state.rows import Put
from coordinator.state.state import State
from tests.support.disks import directory

FILES = "/srv/files"
MIRRORED = DirectoryKind(
    DiskTemplate.DRBD, lambda cluster: cluster.file_storage_dir, option="-", unusable="-"
)
NAMES = ("alpha", "beta", "gamma")
NODES = {
    name: Node(
        uuid=NodeId(name), name=NodeName(name), primary_ip="192.0.2.1", group=GroupId("group")
    )
    for name in NAMES
}
ALPHA, BETA, GAMMA = NODES.values()


def planned(name: str = "web1", *nodes: Node, memory: int = 512) -> PlannedInstance:
    uuids = tuple(node.uuid for node in nodes)
    disk = Disk(
        uuid=DiskId(f"{name}-disk"), size=MiB(1024), nodes=uuids,
        backing=FileBacking(path=f"{FILES}/{name}.raw", shared=False),
    )  # fmt: skip
    instance = Instance(
        uuid=InstanceId(name), name=InstanceName(name), admin_state=AdminState.UP,
        primary_node=uuids[0] if uuids else NodeId(""), hypervisor="kvm",
        disk_template=DiskTemplate.DRBD, disks=(disk.uuid,),
        beparams={"maxmem": memory, "minmem": memory},
    )  # fmt: skip
    return PlannedInstance(instance, (disk,))


def configured(*there: PlannedInstance) -> Config:
    items: list[Stored] = [
        ClusterObject(
            uuid=ClusterId("c"), name=ClusterName("test"), master=NodeId("alpha"),
            file_storage_dir=FILES, enabled_disk_templates=(DiskTemplate.DRBD,),
        ),
        Group(uuid=GroupId("group"), name=GroupName("default")),
        Group(uuid=GroupId("other"), name=GroupName("other")),
        *NODES.values(),
    ]  # fmt: skip
    for one in there:
        items += [one.instance, *one.disks]
    return State().apply(map(Put, items)).config


def facts(memory: int = 4096, space: int = 100_000) -> NodeFacts:
    report = StorageReport(
        pool=directory(FILES), total=MiB(space), free=MiB(space), usable=True
    )  # fmt: skip
    return NodeFacts(
        name=NodeName("-"), version="1", boot_id="b", clock=0.0, memory_total=MiB(8192),
        memory_free=MiB(memory), memory_dom0=MiB(512), cpus=8, cpu_sockets=1, cpu_nodes=1,
        storage=(report,),
    )  # fmt: skip


ROOMY = dict.fromkeys(NAMES, facts())
LIVE = {NodeId(name): each for name, each in ROOMY.items()}
