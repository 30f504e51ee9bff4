"""The vectorised score against the simple one."""

from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from common.model.template import DiskTemplate
from common.record import replace
from coordinator.allocator.allocation.pair import Pairs
from coordinator.allocator.model import state as states
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.row_score import RowScore
from coordinator.allocator.model.score import Changed, Score
from coordinator.allocator.model.state import State
from coordinator.allocator.model.terms import SPREADS, TOLERANCE, WEIGHTS, Term
from coordinator.allocator.model.trials import as_primary
from coordinator.allocator.request import Allocate
from tests.support.seeds import examples
from tests.unit.allocator.clusters import Taste, random_demand, random_snapshot
from tests.unit.allocator.simple_score import SimpleCluster
from tests.unit.allocator.small import survey

seeds = st.integers(0, 2**32)


@settings(max_examples=examples(60))
@given(seed=seeds)
def test_the_score_as_it_stands_is_the_simple_one_to_the_last_bit(seed: int) -> None:
    rng = Random(seed)
    snapshot = random_snapshot(rng, Taste.random(rng))
    scope = State(ClusterModel(snapshot)).scope(range(len(snapshot.nodes)))
    simple = SimpleCluster(snapshot).score([node.name for node in snapshot.nodes])
    assert scope.standing.value == simple


@settings(max_examples=examples(60))
@given(seed=seeds)
def test_the_score_of_a_choice_is_the_simple_one_with_the_instance_placed(seed: int) -> None:
    rng = Random(seed)
    taste = Taste.random(rng)
    snapshot = random_snapshot(rng, taste)
    demand = random_demand(rng, taste, "new")
    found = survey(snapshot, Allocate(instance=demand, check_redundancy=False))
    for group in found.groups:
        for choice in group.choices:
            simple = SimpleCluster(snapshot)
            simple.add(demand, *choice.nodes)
            score = simple.score([node.name for node in snapshot.nodes])
            if len(choice.nodes) == 1:
                assert choice.score == score
            else:  # updated rather than computed afresh, as in hail, which rounds differently
                assert choice.score == pytest.approx(score, rel=1e-9, abs=2e-7)


@settings(max_examples=examples(60))
@given(seed=seeds)
@example(seed=252)  # a second group makes terms differ that are equal in the first
def test_no_pair_scores_less_than_the_bound_of_its_primary(seed: int) -> None:
    rng = Random(seed)
    taste = replace(Taste.random(rng), templates=(DiskTemplate.DRBD,))
    model = ClusterModel(random_snapshot(rng, taste))
    state, demand = State(model), random_demand(rng, taste, "new")
    candidates = [node for node in model.groups[0] if model.usable[node]]
    for few in (states.FEW, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(states, "FEW", few)
            scope = state.scope(range(model.size))
        scores = Pairs(state, scope, candidates, demand)._scores
        bounds = scores._bounds()
        for primary, _, score in scores.from_best():
            assert not score < bounds[primary]


@settings(max_examples=examples(60))
@given(seed=seeds)
def test_estimates_of_single_nodes_are_close_enough_too(seed: int) -> None:
    rng = Random(seed)
    taste = Taste.random(rng)
    model = ClusterModel(random_snapshot(rng, taste))
    state, nodes = State(model), range(model.size)
    demand = random_demand(rng, taste, "new")
    scope = state.scope(nodes)
    figures = as_primary(state, scope, nodes, demand, force=True).figures
    rows = scope.standing
    assert isinstance(rows, RowScore)
    arrays = Score(model.resources, rows.crowding)
    changed = Changed(np.arange(model.size)[None], np.array(figures).T[:, None], np.zeros(1, int))
    exact = arrays.exact(changed)
    np.testing.assert_allclose(arrays.estimates(changed), exact, rtol=0, atol=TOLERANCE / 2)
    estimates = [rows.estimate((node, figures[node]), 0) for node in nodes]
    np.testing.assert_allclose(estimates, exact, rtol=0, atol=TOLERANCE / 2)


def test_there_are_twenty_terms_of_which_thirteen_are_spreads() -> None:
    assert len(Term) == len(WEIGHTS) == 20
    assert len(SPREADS) == 13
