"""The same choice, the same score and the same counts as Debian's hail on random clusters.

The number in a test's name is the seed of its cluster.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from common.errors import NoCapacity
from coordinator.allocator.moving.relocate import relocate
from coordinator.allocator.picture import ON_SHARED_STORAGE, Picture
from coordinator.allocator.placing.place import survey
from coordinator.allocator.request import Allocate, GroupOutcome, Relocate
from tests.unit.allocator import hail
from tests.unit.allocator.clusters import TEMPLATES, Taste, random_picture, random_request

pytestmark = hail.needs_hail


@pytest.mark.parametrize("seed", range(100))
def test_allocation(seed: int, tmp_path: Path) -> None:
    rng = Random(seed)
    taste = Taste.random(rng)
    picture = random_picture(rng, taste)
    compare(picture, random_request(rng, taste, picture), tmp_path)


@pytest.mark.parametrize("seed", range(20))
def test_allocation_in_a_group_asked_for(seed: int, tmp_path: Path) -> None:
    rng = Random(seed)
    taste = replace(Taste.random(rng), groups=3, nodes=9)
    picture = random_picture(rng, taste)
    group = picture.nodes[rng.randrange(9)].group
    inside = {node.name for node in picture.nodes if node.group == group}
    # hail mixes up instances unless those of the group come first.
    instances = sorted(picture.instances, key=lambda instance: instance.primary not in inside)
    picture = replace(picture, instances=tuple(instances))
    compare(picture, replace(random_request(rng, taste, picture), group=group), tmp_path)


@pytest.mark.parametrize("seed", range(20))
def test_allocation_where_nodes_lack_what_scores_divide_by(seed: int, tmp_path: Path) -> None:
    rng = Random(seed)
    taste = Taste.random(rng)
    picture = random_picture(rng, taste)
    totals = ("total_cpus", "spindles", "total_memory", "total_disk")
    nodes = list(picture.nodes)
    for index in rng.sample(range(len(nodes)), len(nodes) // 3):
        lacking: dict[str, Any] = {rng.choice(totals): 0}
        nodes[index] = replace(nodes[index], **lacking)
    picture = replace(picture, nodes=tuple(nodes))
    compare(picture, random_request(rng, taste, picture), tmp_path)


@pytest.mark.parametrize("seed", range(30))
def test_relocation(seed: int, tmp_path: Path) -> None:
    rng = Random(seed)
    picture = random_picture(rng, replace(Taste.random(rng), templates=TEMPLATES, fill=0.3))
    shared = [one for one in picture.instances if one.template in ON_SHARED_STORAGE]
    if not shared:
        return
    request = Relocate(instance=rng.choice(shared).name)
    theirs = hail.ask(picture, request, tmp_path / "request.json")
    try:
        ours: tuple[str, ...] = relocate(picture, request).nodes
    except NoCapacity:
        ours = ()
    assert ours == theirs.nodes


def compare(picture: Picture, request: Allocate, folder: Path) -> None:
    options = () if request.check_redundancy else ("--no-capacity-checks",)
    theirs = hail.ask(picture, request, folder / "request.json", *options)
    ours = survey(picture, request)
    assert (ours.best.choices[0].nodes if ours.best else ()) == theirs.nodes, theirs.info
    tried = {group.group: as_hail_counts(group) for group in ours.groups if not group.problem}
    assert tried == theirs.groups


def as_hail_counts(group: GroupOutcome) -> hail.GroupAnswer:
    failures: Counter[str] = Counter()
    for reason, count in group.failures.items():
        failures[reason.hail_name] += count
    score = hail.show(group.choices[0].score) if group.choices else ""
    return hail.GroupAnswer(score, dict(failures), group.successes)
