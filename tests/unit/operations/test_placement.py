"""What the allocator is shown of the cluster."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from common.errors import Conflict, GntError, Unreachable
from common.model.backing import FileBacking
from common.model.cluster import Cluster
from common.model.disk import Disk
from common.model.group import Group
from common.model.instance import AdminState, Instance
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
from common.noderpc.facts import NodeFacts
from coordinator.locks.names import Owner
from coordinator.operations.placement.demands import Demands
from coordinator.operations.placement.fit import check_policy, promise_of
from coordinator.operations.placement.look import Look
from coordinator.operations.placement.promises import PlannedInstance, Promise, Promises
from coordinator.state.config import Config
from coordinator.state.rows import Put
from coordinator.state.state import State

ALPHA = Node(
    uuid=NodeId("alpha"), name=NodeName("alpha"), primary_ip="192.0.2.1", group=GroupId("group"),
    ndparams={"spindle_count": 3},
)  # fmt: skip
BETA = replace(ALPHA, uuid="beta", name=NodeName("beta"), ndparams={}, drained=True)
WEB1 = Instance(
    uuid=InstanceId("web1"), name=InstanceName("web1"), primary_node=NodeId("alpha"),
    admin_state=AdminState.UP, hypervisor="kvm", disk_template=DiskTemplate.FILE,
    disks=(DiskId("disk"),), beparams={"maxmem": 512, "minmem": 256, "vcpus": 2},
    tags=("service:web",),
)  # fmt: skip
DISK = Disk(uuid=DiskId("disk"), size=MiB(1000), backing=FileBacking(path="/srv/x", shared=False))
CONFIG: Config = State().apply(
    Put(item)
    for item in (
        Cluster(uuid=ClusterId("c"), name=ClusterName("test"), master=NodeId("alpha"),
                tags=("htools:iextags:service",)),
        Group(uuid=GroupId("group"), name=GroupName("default")), ALPHA, BETA, WEB1, DISK,
    )
).config  # fmt: skip
FACTS = NodeFacts(
    name=NodeName("alpha"), version="1", boot_id="b", clock=0.0, memory_total=MiB(8192),
    memory_free=MiB(6000), memory_dom0=MiB(1024), cpus=8, cpu_sockets=1, cpu_nodes=1,
)  # fmt: skip


def test_a_node_is_shown_as_it_is_now() -> None:
    snapshot = Look(CONFIG, {ALPHA.uuid: FACTS, BETA.uuid: FACTS}).snapshot
    alpha, beta = snapshot.nodes
    assert (alpha.total_memory, alpha.own_memory, alpha.free_memory) == (8192, 1024, 6000)
    assert (alpha.total_cpus, alpha.spindles) == (8, 3)
    assert not alpha.offline
    assert beta.drained
    assert snapshot.tags == ("htools:iextags:service",)


@pytest.mark.parametrize("live", [{}, {BETA.uuid: Unreachable("it does not answer")}])
def test_a_node_that_does_not_answer_is_shown_offline(live: dict[NodeId, GntError]) -> None:
    snapshot = Look(CONFIG, {ALPHA.uuid: FACTS, **live}).snapshot
    assert [node.offline for node in snapshot.nodes] == [False, True]


def test_an_instance_is_shown_with_what_it_is_given_at_most() -> None:
    (web1,) = Look(CONFIG, {}).snapshot.instances
    assert (web1.memory, web1.vcpus, web1.disks, web1.primary) == (512, 2, (1000,), 0)
    assert web1.tags == ("service:web",)
    assert web1.status == "running"


def test_an_instance_within_the_policy_is_allowed() -> None:
    check_policy(CONFIG, PlannedInstance(WEB1, (DISK,)), ALPHA)


def test_an_instance_beyond_the_policy_is_refused_with_the_quantity() -> None:
    huge = replace(WEB1, beparams={"maxmem": 40_000, "minmem": 40_000})
    with pytest.raises(Conflict, match=r"group default does not allow web1: it .*memory.*--ign"):
        check_policy(CONFIG, PlannedInstance(huge, (DISK,)), ALPHA)


WEB2 = replace(WEB1, uuid="web2", name=InstanceName("web2"), disks=())


def test_memory_of_guests_that_shall_run_is_not_free_whether_they_do_or_not() -> None:
    absent = Look(CONFIG, {ALPHA.uuid: replace(FACTS, guests={})})
    present = Look(CONFIG, {ALPHA.uuid: replace(FACTS, guests={"web1": MiB(512)})})
    assert absent.snapshot.nodes[0].free_memory == 6000 - 512
    assert present.snapshot.nodes[0].free_memory == 6000
    assert absent.free_memory(ALPHA, replace(FACTS, guests={}), but="web1") == 6000


def test_a_node_too_old_to_name_its_guests_is_believed() -> None:
    assert Look(CONFIG, {ALPHA.uuid: FACTS}).snapshot.nodes[0].free_memory == 6000


def test_what_is_promised_counts_once_at_every_stage() -> None:
    planned = PlannedInstance(WEB2, (replace(DISK, uuid="disk2"),))
    promise = promise_of(CONFIG, planned, [ALPHA])
    recorded = CONFIG.apply([Put(WEB2)])
    quiet, busy = {"web1": MiB(512)}, {"web1": MiB(512), "web2": MiB(512)}
    for config, guests, free in (
        (CONFIG, quiet, 6000 - 512),
        (recorded, quiet, 6000 - 512),
        (recorded, busy, 6000),
    ):
        look = Look(config, {ALPHA.uuid: replace(FACTS, guests=guests)}, (promise,))
        assert [each.name for each in look.snapshot.instances] == ["web1", "web2"]
        assert look.snapshot.nodes[0].free_memory == free


def test_what_is_promised_on_a_node_that_was_removed_is_left_out_of_the_snapshot() -> None:
    """Else nothing could be placed anywhere until the job with that promise has ended."""
    planned = PlannedInstance(replace(WEB2, primary_node=NodeId("gone")), ())
    promise = Promise(InstanceId(WEB2.uuid), NodeId("gone"), MiB(512), planned)
    look = Look(CONFIG, {ALPHA.uuid: FACTS, BETA.uuid: FACTS}, (promise,))
    assert [each.name for each in look.snapshot.instances] == ["web1"]


def test_a_snapshot_taken_amid_another_has_what_is_configured_for_it() -> None:
    """As when a question is answered in a thread while the cluster's defaults change."""
    bare = CONFIG.apply([Put(replace(WEB1, beparams={}))])
    cluster = bare.cluster
    larger = bare.apply([Put(replace(cluster, beparams={"maxmem": 4096, "minmem": 4096}))])
    demands, homes = Demands(), [(0,)]

    def planned(config: Config) -> list[PlannedInstance]:
        return [PlannedInstance(each, config.disks_of(each)) for each in config.sorted_instances()]

    class Interrupted(list[PlannedInstance]):
        def __iter__(self) -> Iterator[PlannedInstance]:
            assert demands.of(larger, planned(larger), homes, None)[0].memory == 4096
            return super().__iter__()

    before = demands.of(bare, planned(bare), homes, None)[0].memory
    assert before != 4096
    assert demands.of(bare, Interrupted(planned(bare)), homes, None)[0].memory == before
    assert demands.of(larger, planned(larger), homes, None)[0].memory == 4096
    assert demands.of(bare, planned(bare), homes, None)[0].memory == before


def test_promises_are_replaced_released_and_not_counted_against_oneself() -> None:
    promises, mine, yours = Promises(), Owner("job 1"), Owner("job 2")
    promises.make(mine, [Promise(InstanceId("a"), NodeId("alpha"), MiB(1))])
    promises.make(mine, [Promise(InstanceId("a"), NodeId("beta"), MiB(1))])
    promises.make(yours, [Promise(InstanceId("b"), NodeId("beta"), MiB(2))])
    assert [each.node for each in promises.standing(but=yours)] == ["beta"]
    assert [each.instance for each in promises.standing()] == ["a", "b"]
    promises.make(mine, [])
    promises.release(yours)
    promises.release(yours)
    assert promises.standing() == ()
