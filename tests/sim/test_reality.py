"""The simulation does what reality does: calls come late and twice, processes stop, clocks jump."""

import asyncio
from random import Random
from typing import Any

import pytest

from common.errors import Deposed, Unreachable
from common.model.job import Status
from common.names import InstanceId
from common.noderpc.facts import Facts
from common.noderpc.instances import Instances
from coordinator.nodes.calls import Nodes
from coordinator.operations.base import Operation
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.test.delay import Delay
from tests.sim.settings import WEB1, create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.faults import Gate, Late, Repeated, Slow, Watching
from tests.support.image import uuid_of
from tests.support.network import Line


def _orders(cluster: SimulatedCluster) -> Nodes:
    """Return what the master gives orders with."""
    line = Line(cluster.network, cluster.machines["alpha"])
    return Nodes(line, cluster.state.stamp.epoch, cluster.random)


def test_what_was_sent_arrives_after_its_caller_gave_up() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            gamma = _orders(cluster).service(Facts, cluster.config.node("gamma"))
            seen = Watching(lambda trip: trip.call.name == "facts.facts")
            slow = Slow(lambda trip: trip.call.name == "facts.facts", 100.0)
            cluster.network.faults += [slow, seen]
            with pytest.raises(Unreachable, match="did not answer"):
                await gamma.facts()
            assert not seen.seen
            await asyncio.sleep(200)
            assert [trip.target for trip in seen.seen] == ["gamma"]

    simulate(scenario())


@pytest.mark.parametrize("seed", range(4))
def test_what_was_sent_into_a_cut_may_arrive_when_it_is_mended(seed: int) -> None:
    async def scenario() -> int:
        async with simulated_cluster(seed=seed) as cluster:
            gamma = _orders(cluster).service(Instances, cluster.config.node("gamma"))
            seen = Watching(lambda trip: trip.call.name == "instances.ensure_gone")
            cluster.network.faults.append(seen)
            cluster.cut("alpha", "gamma")
            for _ in range(12):
                with pytest.raises(Unreachable, match="did not answer"):
                    await gamma.ensure_gone(instance=InstanceId(uuid_of("gamma")))
            assert not seen.seen
            cluster.heal()
            await cluster.settle(60)
            return len(seen.seen)

    assert 0 < simulate(scenario()) < 12


def test_what_was_sent_goes_on_without_the_coordinator_and_not_without_its_machine() -> None:
    async def scenario(*, power: bool) -> int:
        async with simulated_cluster() as cluster:
            seen = Watching(lambda trip: trip.call.name == "disks.ensure_present")
            slow = Slow(lambda trip: trip.call.name == "disks.ensure_present", 1.0)
            cluster.network.faults += [slow, seen]
            await cluster.submit(create("web1", "gamma"))
            await asyncio.sleep(0.5)
            if power:
                await cluster.lose_power("alpha")
            else:
                await cluster.crash_master()
            await asyncio.sleep(10)
            return len(seen.seen)

    assert simulate(scenario(power=False)) == 1
    assert simulate(scenario(power=True)) == 0


def test_a_call_that_arrives_again_is_carried_out_once() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            cluster.network.faults.append(Repeated(Random(0), 1.0, 30.0))
            await cluster.run(create("web1", "gamma"))
            cluster.network.faults.clear()
            web1, node = cluster.config.instance("web1"), cluster.config.node("gamma")
            await _orders(cluster).service(Instances, node).ensure_gone(instance=web1.uuid)
            await asyncio.sleep(60)  # by now all have come again, the start among them
            assert (await cluster.snapshot()).guests["gamma"] == {}

    simulate(scenario())


@pytest.mark.parametrize("seed", range(3))
def test_jobs_come_to_their_end_where_calls_come_late_and_again(seed: int) -> None:
    async def scenario() -> None:
        async with simulated_cluster(seed=seed) as cluster:
            random = Random(seed)
            cluster.network.faults += [Late(random, 0.1, 4.0), Repeated(random, 0.3, 30.0)]
            for name in ("web1", "web2"):
                await cluster.run(create(name, "gamma"))
            cluster.network.faults.clear()
            await cluster.settle(60)
            cluster.check_replicas()
            assert set((await cluster.snapshot()).guests["gamma"]) == {"web1", "web2"}

    simulate(scenario())


def test_a_suspended_node_answers_when_it_goes_on() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            gamma = _orders(cluster).service(Facts, cluster.config.node("gamma"))
            cluster.suspend("gamma")
            asking = asyncio.ensure_future(gamma.facts())
            await asyncio.sleep(5)
            assert not asking.done()
            cluster.resume("gamma")
            assert (await asking).name == "gamma"
            cluster.suspend("gamma")
            with pytest.raises(Unreachable, match="did not answer"):
                await gamma.facts()
            await cluster.lose_power("gamma")  # suspended, it can be ended all the same
            await cluster.machines["gamma"].boot()
            assert (await gamma.facts()).name == "gamma"

    simulate(scenario())


def test_a_master_that_slept_through_a_take_over_is_none_when_it_wakes() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            old = cluster.master
            number = await cluster.submit(Delay(duration=5.0))
            old.suspend()
            await cluster.take_over("beta")
            await cluster.finished(number)
            old.resume()
            async with asyncio.timeout(60):
                await old.ended.wait()
            assert isinstance(old.ended_by, Deposed)
            await cluster.run(Delay(duration=0.0))

    simulate(scenario())


@pytest.mark.parametrize("jump_s", [-86_400.0, -3_600.0, 3_600.0, 86_400.0])
def test_clocks_that_jump_disturb_no_job(jump_s: float) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma"))
            orders: list[Operation[Any, Any]] = [
                MigrateInstance(instance_name=WEB1, target_node="alpha"),
                create("web2", "beta"),
                ShutDownInstance(instance_name=WEB1),
            ]
            for name, order in zip(cluster.names, orders, strict=True):
                began = asyncio.get_running_loop().time()
                number = await cluster.submit(order)
                await asyncio.sleep(0.1)
                cluster.machines[name].clock_is_off_s += jump_s
                job = await cluster.finished(number)
                assert job.status is Status.SUCCESS, job.ops[0].failure
                assert asyncio.get_running_loop().time() - began < 60

    simulate(scenario())


def test_nobody_asks_a_coordinator_before_its_first_commit() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.crash_master()
            gate = Gate(lambda trip: trip.call.name == "replica.append")
            cluster.network.faults.append(gate)
            beginning = asyncio.ensure_future(cluster.start_master("alpha"))
            await gate.until_held()
            with pytest.raises(ConnectionRefusedError):
                await cluster.submit(Delay(duration=0.0))
            gate.opened.set()
            await beginning
            number = await cluster.submit(Delay(duration=0.0))
            assert (await cluster.finished(number)).status is Status.SUCCESS

    simulate(scenario())
