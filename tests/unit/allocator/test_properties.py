"""What holds for every placement on every cluster."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.model.template import DiskTemplate
from common.record import replace
from coordinator.allocator.allocation.pair_scores import PairScores
from coordinator.allocator.allocation.redundancy import Redundancy
from coordinator.allocator.allocation.two_nodes import AllowedPairs
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.refusal import Reason
from coordinator.allocator.request import Allocate
from coordinator.allocator.snapshot import Snapshot
from coordinator.allocator.tags import TagRules
from tests.support.seeds import examples
from tests.unit.allocator.clusters import Taste, random_demand, random_request, random_snapshot
from tests.unit.allocator.small import survey

seeds = st.integers(0, 2**32)
often = settings(max_examples=examples(60))


def problem(seed: int) -> tuple[Snapshot, Allocate]:
    rng = Random(seed)
    taste = Taste.random(rng)
    snapshot = random_snapshot(rng, taste)
    return snapshot, random_request(rng, taste, snapshot)


@often
@given(seed=seeds)
def test_a_choice_keeps_within_every_limit(seed: int) -> None:
    snapshot, request = problem(seed)
    best = survey(snapshot, request).best
    if best is None:
        return
    asked, rules = request.instance, TagRules.of(snapshot.tags)
    nodes = {node.name: node for node in snapshot.nodes}
    primary, *secondaries = (nodes[name] for name in best.choices[0].nodes)
    assert len(secondaries) == (asked.template is DiskTemplate.DRBD)
    policy = snapshot.groups[primary.group].policy
    there = [one for one in snapshot.instances if snapshot.nodes[one.primary] is primary]

    for node in (primary, *secondaries):
        assert node.is_usable
        assert node.group == primary.group
        assert node is primary or node.name != primary.name
        assert request.among is None or node.name in request.among
        assert not asked.is_local or asked.disk < node.free_disk
    assert asked.used_memory < primary.free_memory
    used = primary.own_cpus + asked.used_vcpus + sum(one.used_vcpus for one in there)
    assert used <= policy.vcpu_ratio * primary.total_cpus
    tags = rules.exclusion_tags(asked.tags)
    assert not any(tags & rules.exclusion_tags(one.tags) for one in there)


@often
@given(seed=seeds)
def test_every_node_that_no_option_uses_has_a_reason(seed: int) -> None:
    snapshot, request = problem(seed)
    found = survey(snapshot, request)
    taking_part = {
        name for group in found.groups for choice in group.choices for name in choice.nodes
    }
    names = {node.name for node in snapshot.nodes}
    assert found.refused.keys() <= names
    assert Reason.NONE not in found.refused.values()
    if found.best is None:
        assert found.refused.keys() == names
    else:
        chosen = set(found.best.choices[0].nodes)
        assert not chosen & found.refused.keys()
        assert chosen <= taking_part
    counted = sum(group.successes + sum(group.failures.values()) for group in found.groups)
    assert counted == found.considered


@often
@given(seed=seeds)
def test_counting_agrees_with_emptying_each_node(seed: int) -> None:
    snapshot, request = problem(seed)
    model = ClusterModel(snapshot)
    everyone = range(model.size)
    redundancy = Redundancy(model, everyone, request.instance)
    for group in survey(snapshot, replace(request, check_redundancy=False, group=None)).groups:
        for choice in group.choices[:1]:
            nodes = tuple(model.index[name] for name in choice.nodes)
            simulated = all(redundancy._simulate(node, nodes) for node in everyone)
            assert (not redundancy.is_hopeless and redundancy.remains(nodes)) == simulated


def test_pairs_tried_in_vain_are_counted_when_somebody_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[AllowedPairs] = []
    count = PairScores.count_rejected

    def noted(scores: PairScores, allowed: AllowedPairs) -> int:
        asked.append(allowed)
        return count(scores, allowed)

    monkeypatch.setattr(PairScores, "count_rejected", noted)
    in_vain = 0
    for seed in range(40):
        rng = Random(seed)
        taste = replace(Taste.random(rng), templates=(DiskTemplate.DRBD,), nodes=6)
        snapshot = random_snapshot(rng, taste)
        found = survey(snapshot, Allocate(instance=random_demand(rng, taste, "new")))
        assert not asked
        for outcome in found.groups:
            assert outcome.successes + sum(outcome.failures.values()) == outcome.considered
            if asked:
                in_vain += outcome.failures[Reason.REDUNDANCY]
            asked.clear()
    assert in_vain
