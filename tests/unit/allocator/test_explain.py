"""An explanation adds up, and names what there was to choose from."""

import math
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from common.names import MiB
from coordinator.allocator.allocation.explain import IN_WORDS, Part, parts_of
from coordinator.allocator.allocation.place import survey
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.terms import Term
from coordinator.allocator.refusal import Reason
from coordinator.allocator.request import Allocate, Survey
from coordinator.allocator.snapshot import Snapshot
from tests.support.seeds import examples
from tests.unit.allocator.clusters import Taste, random_request, random_snapshot
from tests.unit.allocator.small import cluster, demand, node


def explained(snapshot: Snapshot, request: Allocate) -> tuple[Survey, tuple[Part, ...]]:
    model = ClusterModel(snapshot)
    found = survey(model, request)
    return found, parts_of(model, request, found.nodes) if found.nodes else ()


@settings(max_examples=examples(60))
@given(seed=st.integers(0, 2**32))
def test_the_parts_add_up_to_the_scores(seed: int) -> None:
    rng = Random(seed)
    taste = Taste.random(rng)
    snapshot = random_snapshot(rng, taste)
    found, parts = explained(snapshot, random_request(rng, taste, snapshot))
    if not found.choices or not math.isfinite(found.score_before + found.choices[0].score):
        return
    # Scores of pairs are updated rather than summed afresh, as in hail, and so rounded otherwise.
    assert math.isclose(sum(part.before for part in parts), found.score_before, abs_tol=1e-6)
    assert math.isclose(sum(part.after for part in parts), found.choices[0].score, abs_tol=1e-6)


def test_the_best_runners_up_and_refused_nodes_are_told() -> None:
    snapshot = cluster(node("alpha", free=4000), node("beta"), node("gamma", offline=True))
    found, _ = explained(snapshot, Allocate(instance=demand()))
    assert found.nodes == ("beta",)
    assert [choice.nodes for choice in found.choices[1:]] == [("alpha",)]
    assert found.refused == {"gamma": Reason.OFFLINE}


def test_where_nothing_fits_the_reasons_are_told() -> None:
    snapshot = cluster(node("alpha"), node("beta"))
    found, _ = explained(snapshot, Allocate(instance=demand(memory=MiB(20_000))))
    assert (found.nodes, found.choices) == ((), ())
    assert found.refused == dict.fromkeys(("alpha", "beta"), Reason.MEMORY)


def test_every_term_has_words() -> None:
    assert set(IN_WORDS) == set(Term)
