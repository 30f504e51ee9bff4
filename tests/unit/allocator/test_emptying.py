"""Nodes that cannot be emptied: by arithmetic, by counting, and tried out, all the same."""

from random import Random

import numpy as np
import pytest

from common.record import replace
from coordinator.allocator.allocation.emptying import (
    stuck_nodes,
)
from coordinator.allocator.allocation.evacuation import can_evacuate
from coordinator.allocator.allocation.redundancy import Redundancy
from coordinator.allocator.balancing.balance import Balance
from coordinator.allocator.balancing.moves import Limits
from coordinator.allocator.model.assignment import residents_of
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.state import State
from coordinator.allocator.snapshot import NOWHERE, Group, Instance, Node, Snapshot
from coordinator.htools.hcheck import stuck_in_group
from coordinator.htools.text import parse_cluster
from tests.diff.text_clusters import Taste, random_text

FULL = Node(
    name="a", group=0, total_memory=4096, free_memory=1024, total_disk=10240, free_disk=8000,
    total_cpus=8,
)  # fmt: skip
ROOMY = replace(FULL, name="b", free_memory=4096)
GUEST = Instance(
    name="g", memory=3072, disk=1024, vcpus=1, status="running", primary=0, template="rbd",
    disks=(1024,),
)  # fmt: skip


def stuck(nodes: tuple[Node, ...], *guests: Instance) -> list[int]:
    groups = tuple(Group(name=f"g{at}", uuid=f"u{at}") for at in range(2))
    model = ClusterModel(Snapshot(groups=groups, nodes=nodes, instances=guests))
    return sorted(stuck_in_group(model, model.groups[0]))


def test_an_instance_moves_where_there_is_room() -> None:
    assert stuck((FULL, ROOMY), GUEST) == []


def test_or_is_stuck() -> None:
    small = replace(ROOMY, total_memory=2048, free_memory=2048)
    assert stuck((FULL, small), GUEST) == [0]
    assert stuck((FULL,), GUEST) == [0]


def test_a_plain_instance_needs_disk_and_the_policy_as_well() -> None:
    plain = replace(GUEST, template="plain")
    assert stuck((FULL, ROOMY), plain) == []
    assert stuck((FULL, replace(ROOMY, free_disk=1024)), plain) == [0]
    assert stuck((FULL, ROOMY), replace(plain, vcpus=9)) == [0]


def test_a_mirror_has_to_take_all_its_peer_brings() -> None:
    mirrored = replace(GUEST, template="drbd", secondary=1)
    nodes = (FULL, ROOMY)
    assert stuck(nodes, mirrored) == []
    assert stuck(nodes, mirrored, replace(mirrored, name="h", memory=1024)) == [0]


def test_one_that_has_a_choice_may_take_the_room_that_another_needs() -> None:
    nodes = (FULL, replace(ROOMY, free_memory=4000), replace(FULL, name="c", free_memory=2000))
    small = replace(GUEST, name="small", memory=1000)
    groups, everyone = (Group(name="g0", uuid="u0"),), range(3)
    model = ClusterModel(Snapshot(groups=groups, nodes=nodes, instances=(GUEST, small)))
    residents = residents_of(model, 0)
    assert not can_evacuate(State(model), 0, residents, everyone)


def test_a_spindle_taken_without_disks_may_be_what_a_mirror_needs() -> None:
    some = [replace(each, exclusive=True, spindles=2, free_spindles=1) for each in (FULL, ROOMY)]
    mirrored = replace(GUEST, memory=512, template="drbd", secondary=1, disk_spindles=1)
    groups = (Group(name="g0", uuid="u0"),)
    model = ClusterModel(Snapshot(groups=groups, nodes=tuple(some), instances=(mirrored,)))
    for spindles, remains in ((1, True), (2, False), (None, False)):
        demand = replace(GUEST, name="new", memory=128, template="diskless", disk_spindles=spindles)
        redundancy = Redundancy(model, range(2), demand)
        simulated = all(redundancy._simulate(node, (1,)) for node in range(2))
        assert redundancy.remains((1,)) is simulated is remains
        assert Redundancy(model, range(2), replace(demand, disk_spindles=0)).remains((1,))


def test_what_is_made_anew_has_to_tell_its_spindles_where_storage_is_exclusive() -> None:
    alone = [replace(each, exclusive=True, spindles=2, free_spindles=2) for each in (FULL, ROOMY)]
    for nodes in ((FULL, alone[1]), (alone[0], alone[1])):
        assert stuck(nodes, replace(GUEST, template="file", memory=512)) == [0]
        assert stuck(nodes, replace(GUEST, template="file", memory=512, disk_spindles=1)) == []
        assert stuck(nodes, replace(GUEST, memory=512)) == []


def test_a_mirror_in_another_group_is_no_help() -> None:
    mirrored = replace(GUEST, template="drbd", secondary=1)
    nodes = (FULL, replace(ROOMY, group=1), replace(ROOMY, name="c"))
    assert stuck(nodes, mirrored) == [0]
    assert stuck(nodes, replace(mirrored, secondary=NOWHERE)) == [0]


@pytest.mark.parametrize("seed", range(40))
def test_what_counting_tells_is_what_trying_shows(seed: int) -> None:
    """Also after a balancing, which brings what it moved to the front."""
    rng = Random(seed)
    model = ClusterModel(parse_cluster(random_text(rng, Taste.random(rng))))
    balance = Balance(model, np.array(model.groups[0]), Limits())
    moved = [move.instance for move, _ in zip(balance.moves(), range(4), strict=False)]
    model, group = balance.state.settled(moved), balance.state.nodes.tolist()
    told = set(stuck_nodes(model, group, group))
    for node in group:
        residents = residents_of(model, node)
        fits = can_evacuate(State(model), node, residents, group)
        assert fits is (node not in told), f"node {node}"
