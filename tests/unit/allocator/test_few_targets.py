"""Nodes tried one by one: the same choices and figures, to the last bit, as with arrays."""

from random import Random

import numpy as np
import pytest

from coordinator.allocator.allocation.evacuation import _best_of_many
from coordinator.allocator.allocation.few_targets import best_of_few
from coordinator.allocator.model import shift
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.occupy import asked, asked_row
from coordinator.allocator.model.resources import NodeResources
from coordinator.allocator.model.score import figures, figures_of_row
from coordinator.allocator.model.state import State
from tests.unit.allocator.clusters import Taste, random_demand, random_snapshot

SEEDS = range(60)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_node_is_chosen(seed: int) -> None:
    rng = Random(seed)
    taste = Taste.random(rng)
    model = ClusterModel(random_snapshot(rng, taste))
    group = np.flatnonzero(model.group_of == 0)
    state = State(model)
    for number in range(6):  # each on what the others leave
        demand = random_demand(rng, taste, f"new{number}")
        targets = group[1:] if rng.random() < 0.5 else group
        is_move = rng.random() < 0.5
        few = best_of_few(state, demand, targets, group, is_move=is_move)
        many = _best_of_many(state, demand, targets, group, is_move=is_move)
        assert few in {None, many}
        if many.target is not None:
            state.put_primary(demand, many.target, many.location)


def test_that_is_compared_at_all() -> None:
    taste = Taste(nodes=5, trouble=0.0)
    state = State(ClusterModel(random_snapshot(Random(1), taste)))
    demand, everyone = random_demand(Random(2), taste, "new"), np.arange(5)
    best = best_of_few(state, demand, everyone, everyone, is_move=True)
    assert best is not None
    assert best.target is not None


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("force", [False, True])
def test_a_row_is_changed_as_an_element_of_arrays(seed: int, force: bool) -> None:
    rng = Random(seed)
    taste = Taste.random(rng)
    model = ClusterModel(random_snapshot(rng, taste))
    nothing, everyone = np.zeros(model.size, dtype=np.int64), np.arange(model.size)
    demand = random_demand(rng, taste, "new", inside=True)
    codes, after = shift.add_primary(
        model.resources.at(everyone), asked(demand), clashes=nothing, location=nothing,
        force=np.array(force),
    )  # fmt: skip
    copies, kept = shift.add_secondary(
        after, asked(demand), promised=nothing + 100, force=np.array(force)
    )
    back = shift.remove_secondary(
        shift.remove_primary(kept, asked(demand), freed=nothing, location=nothing),
        asked(demand), reserved=nothing + 7,
    )  # fmt: skip
    for node in range(model.size):
        code, one = shift.add_primary(
            model.row(node), asked_row(demand), clashes=0, location=0, force=force
        )
        assert (code, one) == (codes[node], after.row(node))
        code, one = shift.add_secondary(one, asked_row(demand), promised=100, force=force)
        assert (code, one) == (copies[node], kept.row(node))
        assert np.array_equal(figures_of_row(one), figures(kept)[:, node], equal_nan=True)
        one = shift.remove_primary(one, asked_row(demand), freed=0, location=0)
        one = shift.remove_secondary(one, asked_row(demand), reserved=7)
        assert isinstance(one, NodeResources)
        assert one == back.row(node)
