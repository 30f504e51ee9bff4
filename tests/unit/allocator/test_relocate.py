"""Where an instance on shared storage moves, or the second copy of a mirrored one."""

import pytest

from common.errors import Conflict, NoCapacity, NotFound
from common.model.template import DiskTemplate
from common.names import MiB
from common.record import replace
from coordinator.allocator.refusal import Reason
from coordinator.allocator.relocation.relocate import relocate
from coordinator.allocator.request import Relocate
from tests.unit.allocator.small import cluster, instance, node

SNAPSHOT = cluster(
    node("alpha", free=7000),
    node("beta", free=4000),
    node("gamma", free=6000),
    instances=(instance("web1", "alpha", memory=MiB(1000)),),
)
WEB1 = Relocate(instance="web1")


def test_the_emptiest_other_node_is_chosen() -> None:
    placement = relocate(SNAPSHOT, WEB1)
    assert placement.nodes == ("gamma",)
    assert [choice.nodes for choice in placement.choices[1:]] == [("beta",)]


def test_a_mirrored_instance_stays_and_gets_another_second_node() -> None:
    web1 = instance("web1", "alpha", "beta", template=DiskTemplate.DRBD)
    placement = relocate(replace(SNAPSHOT, instances=(web1,)), WEB1)
    assert placement.nodes == ("gamma",)
    full = replace(SNAPSHOT.nodes[2], free_memory=10)
    snapshot = replace(SNAPSHOT, nodes=(*SNAPSHOT.nodes[:2], full), instances=(web1,))
    with pytest.raises(NoCapacity, match="of group default can be the secondary one of web1: "):
        relocate(snapshot, WEB1)


def test_only_the_nodes_asked_for() -> None:
    placement = relocate(SNAPSHOT, replace(WEB1, among=frozenset({"beta"})))
    assert placement.nodes == ("beta",)
    assert placement.refused == {"gamma": Reason.RESTRICTED}


def test_a_full_node_gets_nothing() -> None:
    alpha, beta, gamma = SNAPSHOT.nodes
    full = replace(SNAPSHOT, nodes=(alpha, beta, replace(gamma, free_memory=900)))
    assert relocate(full, WEB1).nodes == ("beta",)


def test_nowhere_to_go() -> None:
    alpha, beta, gamma = SNAPSHOT.nodes
    snapshot = replace(
        SNAPSHOT, nodes=(alpha, replace(beta, free_memory=10), replace(gamma, drained=True))
    )
    with pytest.raises(NoCapacity) as caught:
        relocate(snapshot, WEB1)
    assert caught.value.message == (
        "No other node of group default can take web1 from alpha: beta comes nearest, with 10 MiB "
        "of memory free where more than 1000 are needed; 1 node is drained."
    )


def test_a_node_that_is_gone_lends_its_instances_leave_to_break_soft_limits() -> None:
    crowd = tuple(
        instance(f"i{i}", name, vcpus=8, memory=MiB(32))
        for i in range(4)
        for name in ("beta", "gamma")
    )
    snapshot = replace(SNAPSHOT, instances=(*SNAPSHOT.instances, *crowd))
    with pytest.raises(NoCapacity, match="with 0 of 32 virtual processors left"):
        relocate(snapshot, WEB1)
    alpha, beta, gamma = snapshot.nodes
    broken = replace(snapshot, nodes=(replace(alpha, offline=True), beta, gamma))
    assert relocate(broken, WEB1).nodes == ("gamma",)


def test_migration_tags_are_obeyed() -> None:
    old, new = frozenset({"cpu:old"}), frozenset({"cpu:new"})
    alpha, beta, gamma = SNAPSHOT.nodes
    nodes = (replace(alpha, tags=old), replace(beta, tags=old), replace(gamma, tags=new))
    tags: tuple[str, ...] = ("htools:migration:cpu",)
    placement = relocate(replace(SNAPSHOT, nodes=nodes, tags=tags), WEB1)
    assert placement.nodes == ("beta",)
    assert placement.refused == {"gamma": Reason.MIGRATION}
    tags += ("htools:allowmigration:cpu:old::cpu:new",)
    assert relocate(replace(SNAPSHOT, nodes=nodes, tags=tags), WEB1).nodes == ("gamma",)


@pytest.mark.parametrize("template", [DiskTemplate.PLAIN, DiskTemplate.FILE, DiskTemplate.DRBD])
def test_disks_that_are_not_shared_stay(template: DiskTemplate) -> None:
    snapshot = replace(SNAPSHOT, instances=(instance("web1", "alpha", template=template),))
    with pytest.raises(Conflict, match="not on shared storage"):
        relocate(snapshot, WEB1)


def test_an_unknown_instance() -> None:
    with pytest.raises(NotFound, match=r"There is no instance web9\."):
        relocate(SNAPSHOT, Relocate(instance="web9"))
