"""Nodes to turn off and on."""

from random import Random

import pytest

from common.record import replace
from coordinator.allocator.balancing.squeezing import (
    STANDBY_TAG,
    choose_off,
    choose_on,
    dispensable,
    have_room,
    on_standby,
    one_more,
    switch,
)
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.snapshot import DEFAULT_POLICY, Group, Instance, Node, Snapshot
from coordinator.htools.text import parse_cluster
from tests.diff.text_clusters import Taste, random_text

STANDARD = DEFAULT_POLICY.std  # 128 MiB of memory
NODE = Node(
    name="a", group=0, total_memory=4096, free_memory=4096, total_disk=10240, free_disk=10240,
    total_cpus=8,
)  # fmt: skip
GUEST = Instance(
    name="g", memory=1024, disk=0, vcpus=1, status="running", primary=0, template="rbd"
)


def cluster(*guests: Instance, **nodes: Node) -> Snapshot:
    named = tuple(replace(node, name=name) for name, node in nodes.items())
    return Snapshot(groups=(Group(name="g", uuid="u"),), nodes=named, instances=guests)


def test_what_is_needed_stays_on() -> None:
    mirrored = replace(GUEST, template="drbd", primary=3, secondary=4)
    nodes = dict.fromkeys("abcdef", NODE) | {"f": replace(NODE, is_master=True)}
    plain = replace(GUEST, name="p", template="plain", primary=2)
    snapshot = cluster(GUEST, mirrored, plain, **nodes)
    assert dispensable(snapshot) == [0, 1]


def test_standby_is_said_by_a_tag() -> None:
    tagged = replace(NODE, offline=True, tags=(STANDBY_TAG,))
    other = replace(tagged, tags=("htools:standby",))
    assert on_standby(cluster(a=tagged, b=other, c=replace(tagged, offline=False))) == [0]


def test_sizes_are_rounded_down() -> None:
    instance = one_more(STANDARD, 2.99)
    assert (instance.memory, instance.vcpus, instance.spindle_use) == (382, 2, 2)


def test_emptied_nodes_are_turned_off() -> None:
    snapshot = cluster(GUEST, a=replace(NODE, free_memory=3072), b=NODE, c=NODE)
    small, large = one_more(STANDARD, 2.0), one_more(STANDARD, 24.5)
    assert choose_off(snapshot, dispensable(snapshot), small) == [1, 2]
    assert choose_off(snapshot, [1], large) == []  # whoever has the guest has 3072 left, not 3136
    after = switch(snapshot, [0, 1], off=True)
    assert after.is_safe
    assert [move.after for move in after.moves] == [(2, -1)]


def test_nodes_are_turned_on_until_there_is_room() -> None:
    off = replace(NODE, offline=True, tags=(STANDBY_TAG,))
    full = replace(NODE, free_memory=1024)
    guests = [replace(GUEST, name=f"g{at}") for at in range(3)]
    snapshot = cluster(*guests, a=full, b=off, c=off)
    wanted = one_more(STANDARD, 10)
    assert not have_room(ClusterModel(snapshot).resources, wanted)
    assert choose_on(snapshot, on_standby(snapshot), wanted) == [1]
    assert choose_on(snapshot, on_standby(snapshot), one_more(STANDARD, 40)) is None


@pytest.mark.parametrize("seed", range(12))
def test_off_means_empty_with_room_elsewhere(seed: int) -> None:
    rng = Random(seed)
    taste = Taste(nodes=rng.randint(2, 7), templates=("rbd", "ext"), per_node=1.5, down=0.2)
    snapshot = parse_cluster(random_text(rng, taste))
    wanted = one_more(STANDARD, rng.choice((0.5, 2.0, 10.0)))
    chosen = choose_off(snapshot, dispensable(snapshot), wanted)
    if chosen:
        after = switch(snapshot, chosen, off=True)
        homes = [one.primary for one in snapshot.instances]
        for move in after.moves:
            homes[move.instance] = move.after[0]
        assert not set(homes) & set(chosen)
        assert have_room(after.resources, wanted)
        assert not any(snapshot.nodes[one].is_master for one in chosen)
