"""Looking further than one move: never worse, never against a limit, and in few moves."""

import math
import os
from functools import cache
from random import Random

import numpy as np
import pytest

from common.record import replace
from coordinator.allocator.arrays import Bools
from coordinator.allocator.balancing.ahead import LookAhead
from coordinator.allocator.balancing.balance import Balance, Move
from coordinator.allocator.balancing.moves import Limits, MoveKind
from coordinator.allocator.balancing.straighten import straightened
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.resources import NodeResources
from coordinator.allocator.snapshot import Snapshot
from coordinator.htools.text import parse_cluster
from coordinator.htools.view import moved
from tests.diff.text_clusters import Taste, random_text

FIRST_SEED = int(os.environ.get("GANTRY_AHEAD_SEED", "1"))
SEEDS = range(FIRST_SEED, FIRST_SEED + int(os.environ.get("GANTRY_AHEAD_CASES", "8")))


def cluster_of(seed: int) -> Snapshot:
    rng = Random(seed)
    taste = Taste.random(rng, most_nodes=6)
    return parse_cluster(random_text(rng, replace(taste, groups=1, per_node=3)))


def start_of(cluster: Snapshot, limits: Limits | None = None) -> Balance:
    return Balance(ClusterModel(cluster), np.arange(len(cluster.nodes)), limits or Limits())


def look_ahead(start: Balance, most: int | None = None) -> tuple[list[Move], Balance, LookAhead]:
    """The moves that hbal shows, and the group after them."""
    end = start.fork()
    search = LookAhead(end, most=most)
    found = list(search.moves())
    moves, end = straightened(start, found) or (found, end)
    return moves, end, search


class Played:
    """One cluster balanced both ways."""

    def __init__(self, seed: int) -> None:
        self.cluster = cluster_of(seed)
        self.start = start_of(self.cluster)
        self.alone = self.start.fork()
        self.single = list(self.alone.moves())
        self.moves, self.end, self.search = look_ahead(self.start)


@cache
def played(seed: int) -> Played:
    return Played(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_never_worse_than_single_moves(seed: int) -> None:
    story = played(seed)
    start, alone, single, moves = story.start, story.alone, story.single, story.moves
    if not math.isfinite(start.score().value):
        assert not moves
        return
    assert story.end.score().value <= alone.score().value + 1e-9
    if story.search.stalled is not None and single:
        assert story.search.stalled == (len(single), single[-1].score)
    if abs(story.end.score().value - alone.score().value) < 1e-9:
        assert len(moves) <= len(single)


def test_it_wins() -> None:
    """On enough clusters for the search to be worth its time."""
    stories = [played(seed) for seed in SEEDS]
    wins = sum(s.end.score().value < s.alone.score().value - 1e-6 for s in stories)
    assert wins >= len(SEEDS) // 3


@pytest.mark.parametrize("seed", SEEDS)
def test_moves_lead_where_they_say(seed: int) -> None:
    """Each fits, and the snapshot they make of the cluster has the score that was foretold."""
    story = played(seed)
    start, moves = story.start, story.moves
    afterwards = start.fork()
    places = {index: at for at, index in enumerate(start.state.instances.tolist())}
    for move in moves:
        target = int(np.searchsorted(start.state.nodes, move.target))
        assert afterwards.may(move.kind, places[move.instance])
        made = afterwards.attempt(move.kind, places[move.instance], target)
        assert made is not None
        assert (made.before, made.after) == (move.before, move.after)
        assert afterwards.score().value == pytest.approx(move.score, abs=1e-9, nan_ok=True)
    afresh, resources = (
        ClusterModel(moved(story.cluster, moves)).resources,
        story.end.state.resources,
    )
    for figure in ("primaries", "secondaries", "reserved", "disk", "cpus", "spindles", "conflicts"):
        assert (getattr(afresh, figure) == getattr(resources, figure)).all(), figure


def broken(figure: str, resources: NodeResources) -> Bools:
    """Which nodes have, owe or hold what they should not."""
    bounds = {
        "memory": (1, resources.memory),
        "disk": (resources.least_disk, resources.disk),
        "reserve": (resources.reserved, resources.memory),
        "cpus": (resources.cpus, resources.cpu_ratio * resources.total_cpus),
        "spindles": (resources.spindles, resources.spindle_limit),
    }
    least, amount = bounds[figure]
    table: Bools = amount < least
    return table


@pytest.mark.parametrize("seed", SEEDS)
def test_no_limit_is_broken_that_was_kept(seed: int) -> None:
    start, end = played(seed).start, played(seed).end
    before, after = start.state.resources, end.state.resources
    online = ~after.offline
    for figure in ("memory", "disk", "reserve", "cpus", "spindles"):
        assert not (online & broken(figure, after) & ~broken(figure, before)).any(), figure
    held, holds = start.state.holders > 1, end.state.holders > 1
    assert not (holds & ~held)[:, online].any(), "two with the same exclusion tag"


@pytest.mark.parametrize("most", [0, 1, 2, 3, 7])
def test_length_is_kept(most: int) -> None:
    for seed in SEEDS[:4]:
        found = list(LookAhead(played(seed).start.fork(), most=most).moves())
        assert len(found) <= most


@pytest.mark.parametrize(
    "limits",
    [
        Limits(disk_moves=False), Limits(instance_moves=False), Limits(restricted=True),
        Limits(evacuate=True), Limits(excluded=frozenset({"i0.x", "i1.x", "i2.x"})),
        Limits(selected=frozenset({"i3.x", "i4.x", "i5.x"})),
    ],
)  # fmt: skip
def test_limits_are_kept(limits: Limits) -> None:
    kinds_of_disks = set(MoveKind) - {MoveKind.FAILOVER, MoveKind.FAILOVER_TO_ANY}
    for seed in SEEDS[:4]:
        cluster = cluster_of(seed)
        moves, _, _ = look_ahead(start_of(cluster, limits))
        kinds, names = (
            {move.kind for move in moves}, {cluster.instances[move.instance].name for move in moves}
        )  # fmt: skip
        assert limits.disk_moves or not kinds & kinds_of_disks
        assert limits.instance_moves or kinds <= {MoveKind.REPLACE_SECONDARY}
        assert not limits.restricted or MoveKind.REPLACE_PRIMARY not in kinds
        assert not names & limits.excluded
        assert limits.selected is None or names <= limits.selected
        if limits.evacuate:
            moving = {move.instance for move in moves}
            homes = {i: cluster.instances[i].homes for i in moving}
            assert all(any(cluster.nodes[n].offline for n in each) for each in homes.values())


@pytest.mark.parametrize("seed", SEEDS)
def test_search_stops_at_the_score_that_is_enough(seed: int) -> None:
    start, moves = played(seed).start, played(seed).single
    if len(moves) < 2:
        return
    enough = moves[len(moves) // 2].score
    found = list(LookAhead(start.fork(), enough=enough).moves())
    assert found == moves[: len(moves) // 2 + 1]


def test_gain_that_is_asked_for_is_asked_of_both_moves() -> None:
    """Below the limit a pair has to gain twice what a move has to."""
    for seed in SEEDS[:4]:
        start = start_of(cluster_of(seed), Limits(min_gain=0.05, min_gain_limit=1e9))
        end = start.fork()
        search = LookAhead(end)
        scores = [start.score().value, *(move.score for move in search.moves())]
        if search.stalled is None:
            continue
        single = search.stalled[0]
        for at in range(single, len(scores) - 2):
            is_gain = scores[at] - scores[at + 1] >= 0.05 or scores[at] - scores[at + 2] >= 0.1
            assert is_gain or scores[at - 1] - scores[at + 1] >= 0.1


def test_an_instance_that_comes_back_does_not_move() -> None:
    """Two moves that undo each other, and one that counts, are one move."""
    text = """g|uuid-g|preferred||

a.x|16384|0|12384|300000|300000|8|M|uuid-g
b.x|16384|0|16384|300000|300000|8|N|uuid-g
c.x|16384|0|16384|300000|300000|8|N|uuid-g

i.x|2000|1000|1|running|Y|a.x||rbd|
j.x|2000|1000|1|running|Y|a.x||rbd|

"""
    start = start_of(parse_cluster(text))
    end = start.fork()
    moves = []
    for one, target in ((0, 1), (1, 2), (0, 2), (0, 0)):
        move = end.attempt(MoveKind.FAILOVER_TO_ANY, one, target)
        assert move is not None
        moves.append(replace(move, score=end.score().value))
    shorter = straightened(start, moves)
    assert shorter is not None
    assert [(move.instance, move.after) for move in shorter[0]] == [(1, (2, -1))]
