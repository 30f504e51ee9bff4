"""The same choice, the same score and the same counts as Debian's hail on random clusters.

The number in a test's name is the seed of its cluster.
"""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from common.errors import NoCapacity
from common.record import replace
from coordinator.allocator.relocation.relocate import relocate
from coordinator.allocator.request import Allocate, GroupOutcome, Relocate
from coordinator.allocator.snapshot import Snapshot
from tests.support.seeds import examples
from tests.unit.allocator import hail
from tests.unit.allocator.clusters import TEMPLATES, Taste, random_request, random_snapshot
from tests.unit.allocator.small import survey

pytestmark = hail.needs_hail


@pytest.mark.parametrize("seed", range(examples(100)))
def test_allocation(seed: int, tmp_path: Path) -> None:
    rng = Random(seed)
    taste = Taste.random(rng)
    snapshot = random_snapshot(rng, taste)
    compare(snapshot, random_request(rng, taste, snapshot), tmp_path)


@pytest.mark.parametrize("seed", range(examples(20)))
def test_allocation_in_a_group_asked_for(seed: int, tmp_path: Path) -> None:
    rng = Random(seed)
    taste = replace(Taste.random(rng), groups=3, nodes=9)
    snapshot = random_snapshot(rng, taste)
    group = snapshot.nodes[rng.randrange(9)].group
    inside = {at for at, node in enumerate(snapshot.nodes) if node.group == group}
    # hail mixes up instances unless those of the group come first.
    instances = sorted(snapshot.instances, key=lambda instance: instance.primary not in inside)
    snapshot = replace(snapshot, instances=tuple(instances))
    compare(snapshot, replace(random_request(rng, taste, snapshot), group=group), tmp_path)


@pytest.mark.parametrize("seed", range(examples(20)))
def test_allocation_where_nodes_lack_what_scores_divide_by(seed: int, tmp_path: Path) -> None:
    rng = Random(seed)
    taste = Taste.random(rng)
    snapshot = random_snapshot(rng, taste)
    totals = ("total_cpus", "spindles", "total_memory", "total_disk")
    nodes = list(snapshot.nodes)
    for index in rng.sample(range(len(nodes)), len(nodes) // 3):
        lacking: dict[str, Any] = {rng.choice(totals): 0}
        nodes[index] = replace(nodes[index], **lacking)
    snapshot = replace(snapshot, nodes=tuple(nodes))
    compare(snapshot, random_request(rng, taste, snapshot), tmp_path)


@pytest.mark.parametrize("seed", range(examples(40)))
def test_relocation(seed: int, tmp_path: Path) -> None:
    rng = Random(seed)
    snapshot = random_snapshot(rng, replace(Taste.random(rng), templates=TEMPLATES, fill=0.3))
    movable = [one for one in snapshot.instances if one.traits.is_external or one.homes[1:]]
    if not movable:
        return
    request = Relocate(instance=rng.choice(movable).name)
    theirs = hail.ask(snapshot, request, tmp_path / "request.json")
    try:
        ours: tuple[str, ...] = relocate(snapshot, request).nodes
    except NoCapacity:
        ours = ()
    assert ours == theirs.nodes


def compare(snapshot: Snapshot, request: Allocate, folder: Path) -> None:
    options = () if request.check_redundancy else ("--no-capacity-checks",)
    theirs = hail.ask(snapshot, request, folder / "request.json", *options)
    ours = survey(snapshot, request)
    assert (ours.best.choices[0].nodes if ours.best else ()) == theirs.nodes, theirs.info
    names = [group.name for group in snapshot.groups]
    tried = {names[one.group]: as_hail_counts(one) for one in ours.groups if not one.problem}
    assert tried == theirs.groups


def as_hail_counts(group: GroupOutcome) -> hail.GroupAnswer:
    failures: Counter[str] = Counter()
    for reason, count in group.failures.items():
        failures[reason.hail_name] += count
    score = hail.show(group.choices[0].score) if group.choices else ""
    return hail.GroupAnswer(score, dict(failures), group.successes)
