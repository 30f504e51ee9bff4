"""Rounds of reboots: nobody loses both copies, and what has to move finds room."""

from random import Random

import pytest

from common.record import fields_of
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.rolling.colouring import classes, most_colours_first
from coordinator.allocator.rolling.layout import Layout, layout_of, moves_between
from coordinator.allocator.rolling.rounds import Mover, graph_of_nodes
from coordinator.allocator.snapshot import NOWHERE, Group, Instance, Node, Snapshot
from coordinator.htools.text import parse_cluster
from tests.diff.text_clusters import Taste, random_text


def node(name: str, *, memory: int = 4096, disk: int = 10240) -> Node:
    return Node(
        name=name, group=0, total_memory=memory, free_memory=memory, total_disk=disk,
        free_disk=disk, total_cpus=4,
    )  # fmt: skip


def guest(name: str, primary: int, secondary: int = NOWHERE, memory: int = 1024) -> Instance:
    template = "rbd" if secondary == NOWHERE else "drbd"
    return Instance(
        name=name, memory=memory, disk=1024, vcpus=1, status="running", primary=primary,
        secondary=secondary, template=template,
    )  # fmt: skip


def cluster(nodes: tuple[Node, ...], *guests: Instance) -> Snapshot:
    used = [sum(g.memory for g in guests if g.primary == at) for at in range(len(nodes))]
    measured = tuple(
        Node(**{name: getattr(one, name) for name in fields_of(Node)}
             | {"free_memory": one.free_memory - taken})
        for one, taken in zip(nodes, used, strict=True)
    )  # fmt: skip
    return Snapshot(groups=(Group(name="g", uuid="u"),), nodes=measured, instances=guests)


def start(snapshot: Snapshot) -> tuple[Layout, Mover]:
    everyone = range(len(snapshot.nodes))
    return layout_of(ClusterModel(snapshot)), Mover(snapshot.instances, everyone)


def names(snapshot: Snapshot, rounds: list[tuple[list[int], Layout]]) -> list[list[str]]:
    return [[snapshot.nodes[one].name for one in nodes] for nodes, _ in rounds]


def test_peers_and_those_with_a_common_peer_are_apart() -> None:
    snapshot = cluster(
        (node("a"), node("b"), node("c"), node("d")), guest("x", 0, 2), guest("y", 1, 2)
    )
    layout, _ = start(snapshot)
    running = graph_of_nodes(layout, snapshot.instances, frozenset(range(4)), all_off=False)
    assert {one: set(near) - {one} for one, near in running.items()} == {
        0: {1, 2}, 1: {0, 2}, 2: {0, 1}, 3: set(),
    }  # fmt: skip
    stopped = graph_of_nodes(layout, snapshot.instances, frozenset(range(4)), all_off=True)
    assert stopped == {0: [2], 1: [2], 2: [1, 0], 3: []}


def test_rounds_are_split_where_room_is_short() -> None:
    """Two of three nodes are full; only one at a time can be emptied onto the others."""
    nodes = tuple(node(name, memory=3072) for name in "abc")
    snapshot = cluster(nodes, *(guest(f"g{at}", at % 3, memory=1000) for at in range(6)))
    layout, mover = start(snapshot)
    rounds = mover.rounds_by_room([0, 1, 2], layout)
    assert rounds is not None
    assert names(snapshot, rounds) == [["a"], ["b"], ["c"]]
    for (left,), after in rounds:
        assert not after.places[left].primaries
        assert len(moves_between(snapshot.instances, layout, after)) == 2


def test_no_room_at_all_is_told() -> None:
    snapshot = cluster((node("a"), node("b", memory=512)), guest("g", 0))
    layout, mover = start(snapshot)
    assert mover.rounds_by_room([0], layout) is None


def test_copies_move_off_too() -> None:
    snapshot = cluster((node("a"), node("b"), node("c")), guest("x", 0, 1))
    layout, mover = start(snapshot)
    failed_over = mover.failed_over([0], layout)
    assert failed_over is not None
    assert failed_over.assignments[0] == (1, 0)
    rounds = mover.rounds_by_copies([0], failed_over)
    assert rounds is not None
    ((_, after),) = rounds
    assert moves_between(snapshot.instances, layout, after) == [(0, 1, 2)]


def test_a_mere_failover_is_no_move() -> None:
    snapshot = cluster((node("a"), node("b")), guest("x", 0, 1))
    layout, mover = start(snapshot)
    after = mover.failed_over([0], layout)
    assert after is not None
    assert moves_between(snapshot.instances, layout, after) == []


@pytest.mark.parametrize("seed", range(60))
def test_rounds_of_random_clusters(seed: int) -> None:
    rng = Random(seed)
    snapshot = parse_cluster(random_text(rng, Taste.random(rng)))
    layout, mover = start(snapshot)
    nodes = frozenset(range(len(snapshot.nodes)))
    graph = graph_of_nodes(layout, snapshot.instances, nodes, all_off=False)
    seen: list[int] = []
    for together in classes(most_colours_first(graph)):
        for one in snapshot.instances:
            assert not {one.primary, one.secondary} <= set(together), f"{one.name} is cut off"
        rounds = mover.rounds_by_room(together, layout)
        for cleared, after in rounds or []:
            seen += cleared
            for at in cleared:
                assert not mover.unmirrored(after, at)
            for index, new, _ in moves_between(snapshot.instances, layout, after):
                assert new not in cleared
                assert after.places[new].resources.memory > 0
                one = snapshot.instances[index]
                assert snapshot.nodes[new].group == snapshot.nodes[one.primary].group
    assert len(seen) == len(set(seen))
