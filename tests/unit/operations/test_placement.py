"""What the allocator is shown of the cluster."""

import pytest
from msgspec.structs import replace

from common.errors import Conflict, GntError, Unreachable
from common.model.cluster import Cluster
from common.model.disk import Disk, DiskTemplate, FileBacking
from common.model.group import Group
from common.model.instance import AdminState, Instance
from common.model.node import Node
from common.names import (
    ClusterName,
    DiskId,
    GroupId,
    GroupName,
    InstanceName,
    MiB,
    NodeId,
    NodeName,
)
from common.noderpc.facts import NodeFacts
from coordinator.operations.placement import check_policy, take_picture
from coordinator.state.config import Config
from coordinator.state.rows import Put
from coordinator.state.state import State

ALPHA = Node(
    uuid="alpha", name=NodeName("alpha"), primary_ip="192.0.2.1", group=GroupId("group"),
    ndparams={"spindle_count": 3},
)  # fmt: skip
BETA = replace(ALPHA, uuid="beta", name=NodeName("beta"), ndparams={}, drained=True)
WEB1 = Instance(
    uuid="web1", name=InstanceName("web1"), primary_node=NodeId("alpha"),
    admin_state=AdminState.UP, hypervisor="kvm", disk_template=DiskTemplate.FILE,
    disks=(DiskId("disk"),), beparams={"maxmem": 512, "minmem": 256, "vcpus": 2},
    tags=("service:web",),
)  # fmt: skip
DISK = Disk(uuid="disk", size=MiB(1000), backing=FileBacking(path="/srv/x", shared=False))
CONFIG: Config = State().apply(
    Put(item)
    for item in (
        Cluster(uuid="c", name=ClusterName("test"), master=NodeId("alpha"),
                tags=("htools:iextags:service",)),
        Group(uuid="group", name=GroupName("default")), ALPHA, BETA, WEB1, DISK,
    )
).config  # fmt: skip
FACTS = NodeFacts(
    name=NodeName("alpha"), version="1", boot_id="b", clock=0.0, memory_total=MiB(8192),
    memory_free=MiB(6000), memory_dom0=MiB(1024), cpus=8, cpu_sockets=1, cpu_nodes=1,
)  # fmt: skip


def test_a_node_is_shown_as_it_is_now() -> None:
    picture = take_picture(CONFIG, {"alpha": FACTS, "beta": FACTS})
    alpha, beta = picture.nodes
    assert (alpha.total_memory, alpha.reserved_memory, alpha.free_memory) == (8192, 1024, 6000)
    assert (alpha.total_cpus, alpha.spindles) == (8, 3)
    assert not alpha.offline
    assert beta.drained
    assert picture.cluster_tags == ("htools:iextags:service",)


@pytest.mark.parametrize("live", [{}, {"beta": Unreachable("it does not answer")}])
def test_a_node_that_does_not_answer_is_shown_offline(live: dict[str, GntError]) -> None:
    picture = take_picture(CONFIG, {"alpha": FACTS, **live})
    assert [node.offline for node in picture.nodes] == [False, True]


def test_an_instance_is_shown_with_what_it_is_given_at_most() -> None:
    (web1,) = take_picture(CONFIG, {}).instances
    assert (web1.memory, web1.vcpus, web1.disks, web1.primary) == (512, 2, (1000,), "alpha")
    assert web1.tags == {"service:web"}
    assert web1.state is AdminState.UP


def test_an_instance_within_the_policy_is_allowed() -> None:
    check_policy(CONFIG, WEB1, [DISK], ALPHA)


def test_an_instance_beyond_the_policy_is_refused_with_the_quantity() -> None:
    huge = replace(WEB1, beparams={"maxmem": 40_000, "minmem": 40_000})
    with pytest.raises(Conflict, match=r"group default does not allow web1: alpha .*memory.*--ign"):
        check_policy(CONFIG, huge, [DISK], ALPHA)
