"""What counting tells of instances that leave a node, held against moving them one by one."""

from collections import Counter
from collections.abc import Callable
from itertools import cycle
from random import Random
from typing import Any

import pytest

from common.record import replace
from coordinator.allocator.allocation import evacuation
from coordinator.allocator.allocation.evacuation import can_evacuate
from coordinator.allocator.allocation.slots import all_fit
from coordinator.allocator.model.assignment import residents_of
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.state import State
from coordinator.allocator.snapshot import Group, Instance, Node, Snapshot
from coordinator.htools.text import parse_cluster
from tests.diff.text_clusters import TEMPLATES, Taste, random_text

_KINDS = (("plain",), ("rbd",), ("plain", "diskless"), TEMPLATES)
NODE = Node(
    name="a", total_memory=8192, free_memory=4097, total_disk=90000, free_disk=4097, total_cpus=8
)
GUEST = Instance(
    name="g", memory=1024, disk=1024, vcpus=1, primary=0, template="plain", disks=(1024,),
    disk_spindles=1,
)  # fmt: skip


def told_of(
    sizes: list[int], *targets: Node, templates: tuple[str, ...] = ("plain",)
) -> bool | None:
    """What counting tells of instances of so much memory that leave a node."""
    each = enumerate(zip(sizes, cycle(templates), strict=False))
    guests = [
        replace(GUEST, name=f"g{at}", memory=size, template=template)
        for at, (size, template) in each
    ]
    nodes = (NODE, *(replace(node, name=f"t{at}") for at, node in enumerate(targets)))
    groups = (Group(name="g0", uuid="u0"),)
    model = ClusterModel(Snapshot(groups=groups, nodes=nodes, instances=guests))
    return all_fit(State(model), guests, 0, range(1, len(nodes)), after=())


def test_equal_instances_fill_the_slots_of_all_targets_to_the_last() -> None:
    assert told_of([1024] * 4, NODE) is True
    assert told_of([1024] * 5, NODE) is False
    assert told_of([1024] * 8, NODE, NODE) is True
    assert told_of([1024] * 4, replace(NODE, free_disk=4096)) is False
    alone = replace(NODE, exclusive=True, spindles=9, free_spindles=3)
    assert told_of([1024] * 3, alone) is True
    assert told_of([1024] * 4, alone) is False


def test_what_does_not_fit_together_is_stuck_though_each_fits() -> None:
    assert told_of([1000, 2000, 2000], NODE) is False
    assert told_of([200, 2000, 4000], NODE, replace(NODE, free_memory=150)) is False


def test_where_the_choice_decides_counting_does_not_tell() -> None:
    assert (
        told_of([3000, 1000], replace(NODE, free_memory=3500), replace(NODE, free_memory=1500))
        is None
    )


def test_none_is_stuck_where_the_others_are_too_small_to_close_a_target() -> None:
    assert told_of([200, 3000], replace(NODE, free_memory=3202)) is True


def test_what_has_no_disks_on_its_node_may_go_where_there_is_no_room_for_any() -> None:
    roomy, small = replace(NODE, free_disk=0), replace(NODE, free_memory=1100)
    assert told_of([1024, 1024], roomy, small) is False
    assert told_of([1024, 1024], roomy, small, templates=("plain", "rbd")) is None


@pytest.mark.parametrize("kinds", _KINDS, ids=lambda kinds: kinds[0])
def test_counting_tells_what_moving_one_by_one_shows(
    kinds: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = Counter[bool | None]()

    def noted(*args: Any, **named: Any) -> bool | None:
        answers[told := all_fit(*args, **named)] += 1
        return told

    def fit(model: ClusterModel, node: int, counting: Callable[..., bool | None]) -> bool:
        monkeypatch.setattr(evacuation, "all_fit", counting)
        return can_evacuate(State(model), node, residents_of(model, node), range(model.size))

    for seed in range(80):
        rng = Random(seed)
        taste = replace(
            Taste.random(rng, 7), templates=kinds, tight=True, per_node=rng.choice((4, 7))
        )
        taste = replace(taste, exclusive=rng.random() < 0.5, uniform=rng.random() < 0.5)
        model = ClusterModel(parse_cluster(random_text(rng, taste)))
        for node in range(model.size):
            untold = answers[None]
            fits = fit(model, node, noted)
            if answers[None] == untold:  # else they were moved one by one
                assert fits is fit(model, node, lambda *_, **__: None), f"seed {seed}, node {node}"
    assert min(answers[told] for told in (True, False, None)) > 10, answers
