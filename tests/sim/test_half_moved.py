"""Instances of which it is open where they are, since a move of them ended in the middle."""

import asyncio
import json

import pytest

from common.errors import Conflict, NodeFailure, Stuck
from common.model.job import Status
from common.names import InstanceId, JobId
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.node.modify import ModifyNode
from noded.hypervisor.fake_guest import Phase
from tests.sim.settings import GAMMA, WEB1, create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.faults import Mishap, Once
from tests.support.network import Fault, Trip
from tests.support.seeds import seeds

SOURCE, TARGET = "beta", "gamma"


def test_instance_is_not_settled_while_it_may_be_on_a_node_that_cannot_be_asked() -> None:
    async def scenario() -> None:
        async with simulated_cluster(5, seed=seeds()[0]) as cluster:
            await _half_moved(cluster)
            cluster.network.isolate(TARGET)
            with pytest.raises(NodeFailure, match="may be on gamma, which cannot be asked"):
                await cluster.run(MigrateInstance(instance_name=WEB1, cleanup=True))
            assert cluster.config.instance("web1").maybe_on

    simulate(scenario())


def test_a_move_says_once_that_a_node_is_tried_again_however_long_it_is_silent() -> None:
    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            _, number = await _is_moving(cluster)
            cluster.network.isolate(SOURCE)
            job = await cluster.finished(number)
            told = [entry.message for entry in job.ops[0].log]
            assert len([each for each in told if each.startswith("Trying again")]) == 1, told

    simulate(scenario())


def test_who_fails_over_can_put_right_what_was_cut_off_too() -> None:
    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            uuid = await _half_moved(cluster)
            with pytest.raises(Conflict, match="may be on"):
                await cluster.run(FailOverInstance(instance_name=WEB1, target_node=TARGET))
            await cluster.run(FailOverInstance(instance_name=WEB1, cleanup=True))
            assert not cluster.config.instance("web1").maybe_on
            there = [name for name, m in cluster.machines.items() if m.guests.has(uuid)]
            assert len(there) == 1

    simulate(scenario())


def test_a_start_leaves_the_disks_attached_nowhere_else() -> None:
    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            uuid = await _half_moved(cluster)
            cluster.machines[SOURCE].guests.crash(uuid)
            await cluster.machines[TARGET].guests.ensure_gone(uuid)  # but its disks are there still
            assert cluster.machines[TARGET].attached
            await cluster.run(StartInstance(instance_name=WEB1))
            assert cluster.machines[SOURCE].attached
            assert not cluster.machines[TARGET].attached

    simulate(scenario())


def test_a_guest_arrives_in_the_way_it_runs_whatever_its_target_would_choose() -> None:
    asked: set[str] = set()

    class Receptions(Fault):
        async def going(self, trip: Trip) -> None:
            if trip.call.name == "instances.ensure_receiving":
                asked.add(json.loads(trip.body)["guest"]["parameters"]["accelerator"])

    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            await cluster.run(create("web1", SOURCE))
            cluster.network.faults.append(Receptions())
            await cluster.run(MigrateInstance(instance_name=WEB1, target_node=TARGET))

    simulate(scenario())
    assert asked == {"tcg"}  # as it is reported; what is configured is “auto”


def test_instance_is_not_started_where_a_process_of_it_is_left_elsewhere() -> None:
    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            uuid = await _half_moved(cluster)
            cluster.machines[SOURCE].guests.crash(uuid)
            with pytest.raises(
                Conflict, match=r"has a process .* on gamma, where it should not be"
            ):
                await cluster.run(StartInstance(instance_name=WEB1))
            await cluster.run(MigrateInstance(instance_name=WEB1, cleanup=True))
            await cluster.run(StartInstance(instance_name=WEB1))
            assert cluster.machines[SOURCE].guests.lives(uuid)

    simulate(scenario())


def test_instance_is_settled_once_nothing_is_left_of_it_elsewhere() -> None:
    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            uuid = await _half_moved(cluster)

            def clears(trip: Trip) -> bool:
                return trip.call.name == "instances.ensure_no_shell"

            fault = Once(clears, 0, Mishap.FAILS_BEFORE, cluster.restart_noded)
            cluster.network.faults.append(fault)
            with pytest.raises(NodeFailure):
                await cluster.run(MigrateInstance(instance_name=WEB1, cleanup=True))
            assert cluster.config.instance("web1").maybe_on
            await cluster.run(MigrateInstance(instance_name=WEB1, cleanup=True))
            assert cluster.config.instance("web1").maybe_on == ()
            assert not cluster.machines[TARGET].guests.has(uuid)

    simulate(scenario())


def test_node_that_comes_back_keeps_what_is_left_of_a_guest_that_may_be_there() -> None:
    """What it was, and where it had come, is for whoever settles that to see."""

    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            uuid = await _half_moved(cluster)
            cluster.machines[TARGET].guests.crash(uuid)
            await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
            await cluster.run(ModifyNode(node_name=GAMMA, offline=False))
            assert cluster.machines[TARGET].guests.has(uuid)
            await cluster.run(MigrateInstance(instance_name=WEB1, cleanup=True))
            assert not cluster.machines[TARGET].guests.has(uuid)

    simulate(scenario())


def test_what_has_left_is_not_given_up_while_its_target_does_not_say_that_it_came() -> None:
    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            await cluster.run(create("web1", SOURCE))
            uuid = InstanceId(cluster.config.instance("web1").uuid)
            guests = cluster.machines[TARGET].guests

            class HangsAtTheEnd(Fault):
                async def going(self, trip: Trip) -> None:
                    if trip.call.name == "instances.ensure_resumed":
                        guests.hang(uuid)

            cluster.network.faults.append(HangsAtTheEnd())
            with pytest.raises(Stuck):
                await cluster.run(MigrateInstance(instance_name=WEB1, target_node=TARGET))
            cluster.network.faults.clear()
            with pytest.raises(Conflict, match="has left for gamma, whose process does not say"):
                await cluster.run(MigrateInstance(instance_name=WEB1, cleanup=True))
            guests.wake(uuid)
            await cluster.run(MigrateInstance(instance_name=WEB1, cleanup=True))
            assert guests.lives(uuid)
            assert cluster.config.instance("web1").maybe_on == ()

    simulate(scenario())


async def _half_moved(cluster: SimulatedCluster) -> InstanceId:
    """Leave a shell on the target of a move, and open where the instance is; it is on the source.

    Its source hangs in the middle, and is asked in vain to keep it.
    """
    uuid, number = await _is_moving(cluster)
    guests = cluster.machines[SOURCE].guests
    guests.hang(uuid)
    assert (await cluster.finished(number)).status is Status.ERROR
    guests.wake(uuid)
    assert cluster.config.instance("web1").maybe_on
    assert cluster.machines[TARGET].guests.has(uuid)
    return uuid


async def _is_moving(cluster: SimulatedCluster) -> tuple[InstanceId, JobId]:
    """Have an instance half way to the target; return its job, too."""
    await cluster.run(create("web1", SOURCE))
    uuid = InstanceId(cluster.config.instance("web1").uuid)
    number = await cluster.submit(MigrateInstance(instance_name=WEB1, target_node=TARGET))
    guests = cluster.machines[SOURCE].guests
    while (reached := guests.phase(uuid)) is None or reached < Phase.MEMORY:  # noqa: ASYNC110  # a fake has no events
        await asyncio.sleep(0.01)
    return uuid, number
