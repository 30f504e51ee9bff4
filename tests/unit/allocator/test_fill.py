"""Filling a cluster is placing one instance after the other, only faster."""

from itertools import pairwise
from random import Random

import numpy as np
import pytest

from common.errors import InvalidRequest
from common.model.template import DiskTemplate
from common.names import MiB
from common.record import replace
from coordinator.allocator.allocation.emptying import stuck_nodes
from coordinator.allocator.allocation.place import survey
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.next_model import with_instance
from coordinator.allocator.model.resources import NodeResources
from coordinator.allocator.packing import tiers
from coordinator.allocator.packing.codes import Count, Refusals
from coordinator.allocator.packing.fill import fill
from coordinator.allocator.packing.filling import Filling, Rules
from coordinator.allocator.packing.tiers import fill_in_tiers, runs_of
from coordinator.allocator.policy import Bounds, Spec
from coordinator.allocator.refusal import Failure
from coordinator.allocator.request import Allocate
from coordinator.allocator.snapshot import Instance, Snapshot
from tests.support.seeds import examples
from tests.unit.allocator.clusters import OURS, Taste, random_snapshot
from tests.unit.allocator.small import DEFAULT, node

SEEDS = range(examples(24))


def wanted(rng: Random, template: DiskTemplate) -> Instance:
    disk = MiB(rng.choice((5000, 20000)))
    return Instance(
        name="new",
        template=template,
        memory=MiB(rng.choice((700, 1500))),
        vcpus=rng.randint(1, 3),
        disk=disk,
        disks=(disk,),
        disk_spindles=0,
    )


def start(seed: int) -> tuple[Random, Filling]:
    rng = Random(seed)
    taste = Taste.random(rng)
    return rng, Filling(ClusterModel(random_snapshot(rng, taste)), Rules())


@pytest.mark.parametrize("seed", SEEDS)
def test_each_goes_where_one_alone_would(seed: int) -> None:
    rng, filling = start(seed)
    if len({node.group for node in filling.start.snapshot.nodes}) > 1:
        filling = Filling(filling.start, Rules(closed=frozenset(range(1, 99))))
    template = rng.choice((DiskTemplate.DRBD, DiskTemplate.PLAIN, DiskTemplate.SHAREDFILE))
    demand = wanted(rng, template)
    if not filling.has_candidates(pair=template is DiskTemplate.DRBD):
        return
    found = fill(filling, demand, 30)
    model = filling.start
    placed: list[tuple[int, ...]] = []
    for nodes in (one.nodes for one in found.filling.placed):
        request = Allocate(instance=demand, check_redundancy=False, groups=frozenset({0}))
        best = survey(model, request).best
        assert best is not None, placed
        assert best.choices[0].nodes == tuple(model.names[node] for node in nodes), placed
        model = with_instance(model, demand, nodes)
        placed.append(nodes)
    resources, after = found.filling.resources, model.resources
    for name in NodeResources.names:
        np.testing.assert_allclose(getattr(resources, name), getattr(after, name), err_msg=name)
    assert (found.filling.promised.max(axis=1, initial=0) <= resources.reserved).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_it_ends_when_nothing_fits(seed: int) -> None:
    rng, filling = start(seed)
    demand = wanted(rng, rng.choice((DiskTemplate.DRBD, DiskTemplate.PLAIN)))
    found = fill(filling, demand, None)
    assert (found.filling.refusals.codes(demand) != 0).all()
    again = fill(found.filling, demand, None)
    assert again.filling is found.filling
    assert again.failures == found.failures
    resources, some = found.filling.resources, found.filling.touched
    assert (resources.memory[some] > 0).all()
    assert (resources.disk[some] > 0).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_tiers_place_as_much_as_equal_ones_and_shrink_only(seed: int) -> None:
    rng, filling = start(seed)
    demand = wanted(rng, rng.choice((DiskTemplate.DRBD, DiskTemplate.PLAIN)))
    tiers = fill_in_tiers(filling, demand, None).filling.placed
    assert len(tiers) >= len(fill(filling, demand, None).filling.placed)
    sizes = [size for size, _ in runs_of(tiers)]
    for larger, smaller in pairwise(sizes):
        assert smaller.memory <= larger.memory
        assert smaller.disk <= larger.disk
        assert smaller.vcpus <= larger.vcpus


@pytest.mark.parametrize("seed", SEEDS)
def test_an_instance_shrinks_past_sizes_treated_alike_to_where_single_steps_lead(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, filling = start(seed)
    disk = MiB(rng.choice((40_000, 200_000)))  # two of the latter are more than any node has
    demand = replace(
        wanted(rng, rng.choice((DiskTemplate.DRBD, DiskTemplate.PLAIN))),
        memory=MiB(rng.choice((3000, 30_000))), disk=2 * disk, disks=(disk - 5000, disk + 5000),
        vcpus=rng.choice((1, 40)),
    )  # fmt: skip
    counted: list[Instance] = []
    ask = Refusals.count

    def count(self: Refusals, instance: Instance) -> Count:
        counted.append(instance)
        return ask(self, instance)

    monkeypatch.setattr(Refusals, "count", count)
    found = fill_in_tiers(filling, demand, None)
    leaps = len(counted)
    monkeypatch.setattr(tiers, "_has_own_way", lambda *_: True)  # then each counts for itself
    single = fill_in_tiers(filling, demand, None)
    assert found.failures == single.failures
    assert found.filling.placed == single.filling.placed
    steps = len(counted) - leaps
    assert leaps <= (steps if steps < 300 else steps // 2)


@pytest.mark.parametrize("template", [DiskTemplate.DRBD, DiskTemplate.PLAIN])
def test_a_limit_is_kept(template: DiskTemplate) -> None:
    snapshot = Snapshot(groups=(DEFAULT,), nodes=tuple(node(f"node{n}") for n in range(4)))
    filling, demand = Filling(ClusterModel(snapshot), Rules()), wanted(Random(1), template)
    assert len(fill(filling, demand, 5).filling.placed) == 5
    assert fill(filling, demand, 0).filling is filling
    assert not filling.placed


@pytest.mark.parametrize("template", [DiskTemplate.DRBD, DiskTemplate.PLAIN, DiskTemplate.DISKLESS])
def test_instances_that_take_nothing_need_a_limit(template: DiskTemplate) -> None:
    none = MiB(0)
    least = Spec(
        memory_size=none, cpu_count=0, disk_count=0, disk_size=none, nic_count=0, spindle_use=0
    )
    anything = replace(OURS, minmax=(Bounds(min=least),))
    snapshot = Snapshot(
        groups=(replace(DEFAULT, policy=anything),),
        nodes=tuple(node(f"node{n}") for n in range(3)),
    )
    nothing = replace(
        wanted(Random(1), template), memory=none, vcpus=0, disk=none, disks=(none,), spindle_use=0
    )
    filling = Filling(ClusterModel(snapshot), Rules())
    assert len(fill(filling, nothing, 7).filling.placed) == 7
    with pytest.raises(InvalidRequest, match="without end"):
        fill(filling, nothing, None)
    assert fill(filling, replace(nothing, vcpus=1), None).failures[Failure.CPU]


def test_nodes_stay_such_that_they_can_be_emptied() -> None:
    snapshot = Snapshot(groups=(DEFAULT,), nodes=tuple(node(f"node{n}") for n in range(3)))
    model, demand = ClusterModel(snapshot), wanted(Random(2), DiskTemplate.PLAIN)
    free = fill(Filling(model, Rules()), demand, None).filling
    spare = fill(Filling(model, Rules(emptied=range(3))), demand, None)
    assert 0 < len(spare.filling.placed) < len(free.placed)
    assert spare.failures[Failure.N1] > 0
    everyone = range(3)
    assert not list(stuck_nodes(spare.filling.model(), everyone, everyone))
    assert list(stuck_nodes(free.model(), everyone, everyone))


@pytest.mark.parametrize("seed", SEEDS)
def test_sizes_between_the_same_limits_are_refused_alike_and_tried_once(seed: int) -> None:
    rng, filling = start(seed)
    demand = wanted(rng, rng.choice((DiskTemplate.DRBD, DiskTemplate.PLAIN)))
    filling = fill(filling, demand, rng.randint(0, 9)).filling
    for _ in range(40):
        disk = MiB(rng.choice((rng.randrange(3_000_000), rng.randrange(60_000))))
        memory = MiB(rng.choice((rng.randrange(300_000), rng.randrange(9_000))))
        larger = replace(demand, memory=memory, disk=disk, disks=(disk,))
        spare, (space,) = filling.refusals.spare(larger)
        less = MiB(disk - rng.choice((space, rng.randint(0, space))))
        smaller = replace(larger, memory=MiB(memory - spare), disk=less, disks=(less,))
        assert filling.refusals.size_of(smaller) == filling.refusals.size_of(larger)
        asked = filling.refusals._asked(smaller)
        assert (asked == filling.refusals._asked(larger)).all()
        assert (asked == filling.refusals.codes(larger)).all()
