"""Nodes that cannot be emptied: by arithmetic, by counting, and tried out, all the same."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from coordinator.allocator.balancing.balance import Balance, Limits
from coordinator.allocator.balancing.board import Board, Kind
from coordinator.allocator.balancing.emptying import _Freight, _Node, stuck_nodes
from coordinator.allocator.books.opening import open_books
from coordinator.allocator.snapshot import NOWHERE, Group, Instance, Node, Snapshot
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


def board(nodes: tuple[Node, ...], *guests: Instance, groups: int = 1) -> Board:
    snapshot = Snapshot(
        groups=tuple(Group(name=f"g{at}", uuid=f"u{at}") for at in range(groups)),
        nodes=nodes,
        instances=guests,
    )
    return group_of(snapshot, 0)


def group_of(snapshot: Snapshot, group: int) -> Board:
    nodes = [at for at, node in enumerate(snapshot.nodes) if node.group == group]
    return Board(open_books(snapshot), np.array(nodes, dtype=np.int64))


def test_an_instance_moves_where_there_is_room() -> None:
    assert stuck_nodes(board((FULL, ROOMY), GUEST)) == []


def test_or_is_stuck() -> None:
    small = replace(ROOMY, total_memory=2048, free_memory=2048)
    assert stuck_nodes(board((FULL, small), GUEST)) == [0]
    assert stuck_nodes(board((FULL,), GUEST)) == [0]


def test_a_plain_instance_needs_disk_and_the_policy_as_well() -> None:
    plain = replace(GUEST, template="plain")
    assert stuck_nodes(board((FULL, ROOMY), plain)) == []
    assert stuck_nodes(board((FULL, replace(ROOMY, free_disk=1024)), plain)) == [0]
    assert stuck_nodes(board((FULL, ROOMY), replace(plain, vcpus=9))) == [0]


def test_a_mirror_has_to_take_all_its_peer_brings() -> None:
    mirrored = replace(GUEST, template="drbd", secondary=1)
    nodes = (FULL, ROOMY)
    assert stuck_nodes(board(nodes, mirrored)) == []
    assert stuck_nodes(board(nodes, mirrored, replace(mirrored, name="h", memory=1024))) == [0]


def test_a_mirror_in_another_group_is_no_help() -> None:
    mirrored = replace(GUEST, template="drbd", secondary=1)
    nodes = (FULL, replace(ROOMY, group=1), replace(ROOMY, name="c"))
    assert stuck_nodes(board(nodes, mirrored, groups=2)) == [0]
    assert stuck_nodes(board(nodes, replace(mirrored, secondary=NOWHERE), groups=2)) == [0]


@pytest.mark.parametrize("seed", range(40))
def test_what_counting_tells_is_what_trying_shows(seed: int) -> None:
    """Also after a balancing, which brings what it moved to the front."""
    rng = Random(seed)
    taste = Taste.random(rng)
    snapshot = parse_cluster(random_text(rng, taste))
    nodes = [at for at, node in enumerate(snapshot.nodes) if node.group == 0]
    balance = Balance(open_books(snapshot), np.array(nodes), Limits())
    moved = [move.instance for move, _ in zip(balance.moves(), range(4), strict=False)]
    freight = _Freight.of(balance.board, moved)
    stuck = freight.cannot_fail_over(balance.board)
    told = stuck_nodes(balance.board, moved)
    for at in range(len(nodes)):
        node = _Node(balance.board, freight, at)
        if freight.mirrored[balance.board.primary[freight.mirrored] == at].size:
            assert fails_over(balance.board, freight, at) is not bool(stuck[at]), f"node {at}"
        if stuck[at]:
            assert at in told
        else:
            assert node._try_out() is (at not in told), f"node {at}"


def fails_over(board: Board, freight: _Freight, node: int) -> bool:
    """One instance after the other, really."""
    board = board.copy()
    for one in freight.mirrored[board.primary[freight.mirrored] == node].tolist():
        if board.secondary[one] < 0:
            return False
        outcome = board.carry_out(Kind.FAILOVER, np.array([one]), np.array([0]), force=True)
        if outcome.codes[0]:
            return False
        board.apply(outcome, one)
    return True
