"""What nodes are told of how disks are made: the group's word before the cluster's."""

from msgspec.structs import replace

from common.model.backing import FileBacking
from common.model.cluster import Cluster
from common.model.disk import Disk
from common.model.group import Group
from common.model.instance import Instance
from common.model.node import Node
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
from coordinator.disks.kind import DiskKind
from coordinator.disks.kinds import kind_of
from coordinator.disks.parameters import disk_parameters
from coordinator.state.config import Config
from coordinator.state.rows import Put

CLUSTER = Cluster(
    uuid=ClusterId("c"), name=ClusterName("test"), master=NodeId("alpha"),
    diskparams={"plain": {"stripes": 4, "thin-pool": "pool"}},
)  # fmt: skip
GROUP = Group(
    uuid=GroupId("g"), name=GroupName("default"), diskparams={"plain": {"stripes": 2}}
)  # fmt: skip
ALPHA = Node(uuid=NodeId("alpha"), name=NodeName("alpha"), primary_ip="", group=GROUP.uuid)
WEB1 = Instance(
    uuid=InstanceId("i"), name=InstanceName("web1"), primary_node=ALPHA.uuid, hypervisor="kvm",
    disk_template=DiskTemplate.SHAREDFILE,
)  # fmt: skip
DISK = Disk(
    uuid=DiskId("d"), size=MiB(8), backing=FileBacking(path="/srv/shared/x", shared=True)
)  # fmt: skip
CONFIG = Config().apply([Put(item) for item in (CLUSTER, GROUP, ALPHA)])


class LikePlain(DiskKind):
    """Takes the parameters of plain disks, whatever backs them."""

    pool = kind_of(DiskTemplate.SHAREDFILE).pool
    new_backing = kind_of(DiskTemplate.SHAREDFILE).new_backing


def test_a_group_refines_what_the_cluster_sets_over_the_defaults() -> None:
    plain = DiskTemplate.PLAIN
    assert disk_parameters(CONFIG, None, plain) == {
        "stripes": 4, "stripe-size": 0, "thin-pool": "pool",
    }  # fmt: skip
    assert disk_parameters(CONFIG, GROUP, plain)["stripes"] == 2
    assert disk_parameters(CONFIG, GROUP, plain)["thin-pool"] == "pool"
    assert disk_parameters(CONFIG, GROUP, DiskTemplate.DISKLESS) == {}


def test_nodes_are_told_every_parameter_of_the_group_in_which_an_instance_is() -> None:
    kind = LikePlain(DiskTemplate.PLAIN)
    told = kind.spec(CONFIG, WEB1, DISK).parameters
    assert told == {"stripes": 2, "stripe-size": 0, "thin-pool": "pool"}
    nowhere = replace(WEB1, primary_node=NodeId(""))
    assert kind.spec(CONFIG, nowhere, DISK).parameters["stripes"] == 4


def test_a_stored_value_that_does_not_fit_counts_as_the_default() -> None:
    bad = replace(CLUSTER, diskparams={"plain": {"stripes": 0, "thin-pool": "pool"}})
    config = CONFIG.apply([Put(bad)])
    assert disk_parameters(config, None, DiskTemplate.PLAIN)["stripes"] == 1
    assert disk_parameters(config, None, DiskTemplate.PLAIN)["thin-pool"] == "pool"
