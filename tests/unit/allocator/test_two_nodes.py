"""The best of all pairs of changes is the one that trying them all finds, in loops and arrays."""

from random import Random

import numpy as np
import pytest

from common.model.template import DiskTemplate
from common.record import replace
from coordinator.allocator.allocation.pair import TwoNodes
from coordinator.allocator.allocation.pair_arrays import ArrayPairs
from coordinator.allocator.allocation.pair_rows import RowPairs
from coordinator.allocator.model import state as states
from coordinator.allocator.model.cluster_model import ClusterModel
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
    nothing = [0] * len(targets)

    def pairs() -> RowPairs | ArrayPairs:
        scope = state.scope(range(model.size))
        first = as_primary(state, scope, targets, demand, location=nothing, force=True)
        second = as_secondary(state, scope, targets, demand, force=True)
        return TwoNodes(state, scope, demand, first, second, force=True).scored(scope)

    in_loops = pairs()
    monkeypatch.setattr(states, "FEW", 0)
    in_arrays = pairs()
    assert isinstance(in_loops, RowPairs)
    assert isinstance(in_arrays, ArrayPairs)
    row, column = np.nonzero(in_arrays._possible)
    if not len(row):
        return
    primary = in_arrays._rows[row]
    scores = in_arrays._standing.exact(in_arrays._changed(primary, column))
    unknown = np.isnan(scores)
    best = np.flatnonzero(unknown if unknown.any() else scores == scores.min())[-1]
    assert in_arrays.best_afresh() == (primary[best], column[best])
    assert in_loops.best_afresh() == (primary[best], column[best])
