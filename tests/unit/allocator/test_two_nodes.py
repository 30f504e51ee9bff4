"""The best of all pairs of changes is the one that trying them all finds, in loops and arrays."""

from math import isnan
from random import Random

import pytest

from common.model.template import DiskTemplate
from common.record import replace
from coordinator.allocator.allocation.pair_scores import PairScores
from coordinator.allocator.allocation.two_nodes import AllowedPairs, TwoNodes
from coordinator.allocator.model import state as states
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.score import Score
from coordinator.allocator.model.state import State
from coordinator.allocator.model.trials import as_primary, as_secondary
from tests.unit.allocator.clusters import Taste, random_demand, random_snapshot


@pytest.mark.parametrize("seed", range(60))
def test_best_of_all(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(seed)
    taste = replace(Taste.random(rng), templates=(DiskTemplate.DRBD,), nodes=rng.randint(3, 12))
    model = ClusterModel(random_snapshot(rng, taste))
    state, demand = State(model), random_demand(rng, taste, "new")
    targets = [node for node in range(model.size) if model.usable[node]]

    def pairs() -> PairScores:
        scope = state.scope(range(model.size))
        first = as_primary(state, scope, targets, demand, force=True)
        second = as_secondary(state, scope, targets, demand, force=True)
        return PairScores(scope.standing, TwoNodes(state, scope, demand, first, second, force=True))

    in_loops = pairs()
    monkeypatch.setattr(states, "FEW", 0)
    in_arrays = pairs()
    assert isinstance(in_arrays._standing, Score) > isinstance(in_loops._standing, Score)
    everything = [*in_loops.from_best()]
    assert str(everything) == str([*in_arrays.from_best()])
    _check_order(everything)
    if not everything:
        return
    _check_rule(rng, targets, everything, (in_loops, in_arrays))
    tried = sorted((row, column) for row, column, _ in everything)
    scores = [_afresh(in_loops, pair) for pair in tried]
    unknown = [at for at, score in enumerate(scores) if isnan(score)]
    equal = [at for at, score in enumerate(scores) if score == min(scores)]
    for way in in_loops, in_arrays:
        assert way.best_afresh() == tried[(unknown or equal)[-1]]
    for at, pair in enumerate(tried[:10]):  # some: it takes long to make arrays of one pair
        assert str(_afresh(in_arrays, pair)) == str(scores[at])


def _afresh(way: PairScores, pair: tuple[int, int]) -> float:
    (score,) = way._standing.afresh([way._changes(*pair)], [way._pairs.crowding[pair[0]]])
    return score


def _check_order(everything: list[tuple[int, int, float]]) -> None:
    """By rising score, the last of equals first; what is no number comes last, rising."""
    keys = [
        (True, 0.0, -row, column) if isnan(score) else (False, score, -row, -column)
        for row, column, score in everything
    ]
    assert keys == sorted(keys)


def _check_rule(
    rng: Random,
    targets: list[int],
    everything: list[tuple[int, int, float]],
    ways: tuple[PairScores, ...],
) -> None:
    """Those that a rule allows come in the same order; those before the first of a row count."""
    firsts, seconds = (
        [at for at in range(len(targets)) if rng.random() < share] for share in (0.8, 0.7)
    )
    forbidden = [one[:2] for one in everything if rng.random() < 0.1]
    rule = AllowedPairs(len(targets), firsts, seconds, forbidden)

    def is_allowed(row: int, column: int) -> bool:
        return row in firsts and column in seconds and (row, column) not in forbidden

    allowed = [one for one in everything if is_allowed(*one[:2])]
    in_vain, found = 0, set()
    for row, column, _ in everything:
        found |= {row} if is_allowed(row, column) else set()
        in_vain += row not in found
    for way in ways:
        assert str([*way.from_best(rule)]) == str(allowed)
        assert way.count_rejected(rule) == in_vain
