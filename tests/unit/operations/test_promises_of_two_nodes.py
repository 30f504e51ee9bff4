"""What is promised of two nodes: it counts until the configuration has it."""

import asyncio

import pytest
from msgspec.structs import replace

from common.names import InstanceId, InstanceName, MiB
from coordinator.iallocator.answers import Moves
from coordinator.iallocator.requests import EvacuationMode
from coordinator.operations.base import read_operation
from coordinator.operations.instance.place import Place
from coordinator.operations.placement.growth import promise_of_secondary
from coordinator.operations.placement.look import Look
from coordinator.operations.placement.moves import OffNodes, plan_moves, promises_of
from coordinator.operations.placement.promises import PlannedInstance, Promise
from coordinator.operations.planned_moves import plan_of
from coordinator.operations.registry import load_all
from coordinator.state.rows import Put
from tests.support.disks import directory
from tests.support.placing import cluster_of
from tests.unit.operations.mirrored import (
    ALPHA,
    BETA,
    FILES,
    GAMMA,
    LIVE,
    NODES,
    ROOMY,
    configured,
    facts,
    planned,
)

pytestmark = pytest.mark.usefixtures("mirrored_kind")


def test_a_promise_takes_space_on_both_nodes_and_memory_on_the_first() -> None:
    look = Look(configured(), LIVE)
    promise = Promise(InstanceId("web1"), ALPHA.uuid, MiB(512), planned("web1", ALPHA, BETA))
    after = Look(look.config, look.live, (promise,))
    space = [after.free_space(node, directory(FILES)) for node in NODES.values()]
    assert space == [100_000 - 1024, 100_000 - 1024, 100_000]
    memory = [after.free_memory(node, facts()) for node in NODES.values()]
    assert memory == [4096 - 512, 4096, 4096]
    (shown,) = after.snapshot.instances
    assert (shown.primary, shown.secondary, shown.reserved_memory) == (0, 1, 512)


def test_a_new_secondary_counts_until_the_configuration_has_it() -> None:
    there = planned("web1", ALPHA, BETA)
    promise = promise_of_secondary(there.instance, there.disks, GAMMA)
    moved = [Put(replace(disk, nodes=(ALPHA.uuid, GAMMA.uuid))) for disk in there.disks]
    before = configured(there)
    for config, left in ((before, 100_000 - 1024), (before.apply(moved), 100_000)):
        look = Look(config, LIVE, (promise,))
        assert look.free_space(GAMMA, directory(FILES)) == left
        assert look.free_space(ALPHA, directory(FILES)) == 100_000
        assert [one.secondary for one in look.snapshot.instances] == [2]


def test_growth_counts_until_the_configuration_has_it() -> None:
    there = planned("web1", ALPHA, BETA)
    larger = tuple(replace(disk, size=MiB(1500)) for disk in there.disks)
    promise = Promise(
        there.instance.uuid, ALPHA.uuid, planned=PlannedInstance(there.instance, larger)
    )
    before = configured(there)
    for config, left in ((before, 100_000 - 476), (before.apply(map(Put, larger)), 100_000)):
        look = Look(config, LIVE, (promise,))
        assert look.free_space(BETA, directory(FILES)) == left


def test_moves_of_mirrored_instances_promise_what_they_take_of_both_nodes() -> None:
    config = configured(planned("web1", ALPHA, BETA), planned("web2", ALPHA, BETA))
    moves = Moves(
        (("web1", "default", ("beta", "gamma")), ("web2", "default", ("beta", "alpha"))), (), ()
    )
    promised = promises_of(config, moves)
    look = Look(config, LIVE, promised)
    assert [one.memory for one in promised] == [512, 512]
    assert [look.free_memory(node, facts()) for node in (BETA, GAMMA)] == [4096 - 1024, 4096]
    space = [look.free_space(node, directory(FILES)) for node in NODES.values()]
    assert space == [100_000, 100_000, 100_000 - 1024]
    shown = {one.name: (one.primary, one.secondary) for one in look.snapshot.instances}
    assert shown == {"web1": (1, 2), "web2": (0, 1)}


def test_a_new_secondary_only_takes_no_memory() -> None:
    config = configured(planned("web1", ALPHA, BETA))
    (promise,) = promises_of(config, Moves((("web1", "default", ("alpha", "gamma")),), (), ()))
    look = Look(config, LIVE, (promise,))
    assert promise.memory == 0
    assert look.free_space(GAMMA, directory(FILES)) == 100_000 - 1024


def test_the_job_that_makes_a_planned_second_copy_keeps_its_room() -> None:
    there = planned("web1", ALPHA, BETA)
    cluster, _ = cluster_of(configured(there), ROOMY)
    question = OffNodes((InstanceName("web1"),), EvacuationMode.SECONDARY)
    moves = asyncio.run(plan_moves(cluster, ["hail"], question))
    ((order,),) = plan_of(cluster, moves).jobs
    assert order.input["OP_ID"] == "OP_INSTANCE_REPLACE_DISKS"
    assert order.choice == Place(node=GAMMA.ref)
    load_all()
    (promise,) = read_operation(dict(order.input)).intends(cluster, order.choice)
    look = Look(cluster.config, LIVE, (promise,))
    assert look.free_space(GAMMA, directory(FILES)) == 100_000 - 1024


def test_a_promise_more_leads_to_the_same_as_looking_at_all_of_them() -> None:
    there = planned("web1", ALPHA, BETA)
    config = configured(there)
    promises = (
        promise_of_secondary(there.instance, there.disks, GAMMA),
        Promise(InstanceId("web2"), BETA.uuid, MiB(512), planned("web2", BETA, GAMMA)),
        Promise(InstanceId("web1"), ALPHA.uuid, MiB(512), there),
        Promise(InstanceId("web3"), GAMMA.uuid, MiB(512)),
    )
    step, whole = Look(config, LIVE), Look(config, LIVE, promises)
    for promise in promises:
        step = step.with_promise(promise)
    assert (step.promised, step.planned) == (whole.promised, whole.planned)
    for node in NODES.values():
        assert step.free_space(node, directory(FILES)) == whole.free_space(node, directory(FILES))
    assert [*step.snapshot.nodes] == [*whole.snapshot.nodes]
    assert [*step.snapshot.instances] == [*whole.snapshot.instances]
