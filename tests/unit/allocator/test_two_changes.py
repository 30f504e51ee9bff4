"""The best of all pairs of changes is the one that trying them all finds."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from common.model.template import DiskTemplate
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.occupy import add_primary, add_secondary
from coordinator.allocator.model.score import Changed, figures
from coordinator.allocator.model.state import State
from coordinator.allocator.relocation.two_changes import TwoChanges
from tests.unit.allocator.clusters import Taste, random_demand, random_snapshot


@pytest.mark.parametrize("seed", range(40))
def test_best_of_all(seed: int) -> None:
    rng = Random(seed)
    taste = replace(Taste.random(rng), templates=(DiskTemplate.DRBD,), nodes=rng.randint(3, 12))
    model = ClusterModel(random_snapshot(rng, taste))
    state, demand = State(model), random_demand(rng, taste, "new")
    targets = np.flatnonzero(model.usable)
    if len(targets) < 2:
        return
    scope = state.scope(np.arange(model.size))
    resources = state.at(targets)
    nothing = np.zeros(len(targets), dtype=np.int64)
    _, run = add_primary(resources, demand, clashes=nothing, location=nothing, force=True)
    _, kept = add_secondary(resources, demand, promised=nothing, force=True)
    _, other = add_secondary(resources, demand, promised=nothing + 700, force=True)
    first, second, special = figures(run), figures(kept), figures(other)
    row, column = np.nonzero(~np.eye(len(targets), dtype=np.bool_))
    odd = np.array(sorted(rng.sample(range(len(row)), len(row) // 3)), dtype=np.int64)
    possible = ~np.eye(len(targets), dtype=np.bool_)
    pairs = TwoChanges(
        scope.standing, targets, first, second, nothing, None,
        (row[odd], column[odd], special[:, column[odd]]),
    )  # fmt: skip

    after = second[:, column]
    after[:, odd] = special[:, column[odd]]
    changed = Changed(
        np.stack((targets[row], targets[column])),
        np.stack((first[:, row], after), axis=1),
        np.zeros(len(row), dtype=np.int64),
    )
    scores = scope.standing.exact(changed)
    best = np.flatnonzero(scores == scores.min())[-1]
    assert pairs.best(possible) == (row[best], column[best])
