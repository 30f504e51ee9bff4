"""Orders that the network held, or that waited on the node, until their caller had given up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

import pytest

from common.errors import Expired, GntError, Unreachable
from common.names import Epoch, InstanceId, NodeName
from common.noderpc.instances import Instances
from common.noderpc.mastership import Mastership
from common.rpc.envelope import open_answer
from common.rpc.server import Reply
from common.tasks import Background
from coordinator.nodes.calls import Nodes
from tests.sim.settings import create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.network import Fault, Line, Trip

PATIENCE_S = 600.0


class Holding(Fault):
    """Keeps calls of one kind under way, for a test to deliver whenever it likes."""

    def __init__(self, name: str) -> None:
        self.held: list[Trip] = []
        self._name = name

    async def going(self, trip: Trip) -> Reply | None:
        if trip.call.name == self._name:
            self.held.append(trip)
            await asyncio.Future()
        return None


async def deliver(cluster: SimulatedCluster, trip: Trip) -> Reply:
    """Have a call arrive now, whoever still waits for it."""
    source, noded = cluster.machines[trip.source].shows(), cluster.machines[trip.target].noded
    assert source
    assert noded
    call = trip.call
    return await noded.call(call.service, call.method, trip.envelope, source.peer, trip.body)


class Setting(NamedTuple):
    """The instance web1 runs on gamma; ``holding`` has every order to end it, on its way."""

    cluster: SimulatedCluster
    gamma: Instances
    web1: InstanceId
    holding: Holding

    async def end_web1(self) -> None:
        """Give an order of which only the node's side matters."""
        with suppress(GntError):
            await self.gamma.ensure_gone(instance=self.web1)

    async def names(self) -> list[str]:
        return [guest.name for guest in await self.gamma.guests()]


@asynccontextmanager
async def orders_held() -> AsyncIterator[Setting]:
    async with simulated_cluster() as cluster:
        await cluster.run(create("web1", "gamma"))
        line = Line(cluster.network, cluster.machines["alpha"])
        nodes = Nodes(line, cluster.state.stamp.epoch, cluster.random)
        gamma = nodes.service(Instances, cluster.config.node("gamma"))
        await gamma.guests()  # so that its clock is known
        holding = Holding("instances.ensure_gone")
        cluster.network.faults.append(holding)
        yield Setting(cluster, gamma, InstanceId(cluster.config.instance("web1").uuid), holding)


def result(reply: Reply, trip: Trip) -> object:
    return open_answer(reply.body, trip.call.returns, what="the answer")


def test_an_order_to_end_a_guest_does_nothing_after_its_caller_gave_up() -> None:
    async def scenario() -> None:
        async with orders_held() as at:
            with pytest.raises(Unreachable, match="did not answer"):
                await at.gamma.ensure_gone(instance=at.web1)
            [late] = at.holding.held
            with pytest.raises(Expired, match="after its caller gave up"):
                result(await deliver(at.cluster, late), late)
            assert await at.names() == ["web1"]

    simulate(scenario())


def test_an_order_that_arrives_in_time_is_carried_out_once_however_often_it_comes() -> None:
    async def scenario() -> None:
        async with orders_held() as at:
            asking = Background().start(at.end_web1(), name="order")
            await asyncio.sleep(20)
            [trip] = at.holding.held
            assert result(await deliver(at.cluster, trip), trip) is None
            assert await at.names() == []
            at.cluster.network.faults.clear()
            await at.cluster.run(create("web2", "gamma"))
            await asyncio.sleep(PATIENCE_S)
            assert result(await deliver(at.cluster, trip), trip) is None  # as recorded
            assert await at.names() == ["web2"]
            await asking

    simulate(scenario())


def test_an_order_for_a_noded_that_has_ended_is_refused_by_the_next() -> None:
    async def scenario() -> None:
        async with orders_held() as at:
            asking = Background().start(at.end_web1(), name="order")
            await asyncio.sleep(1)
            machine = at.cluster.machines["gamma"]
            await machine.kill_noded()
            await machine.start_noded()
            [trip] = at.holding.held
            with pytest.raises(Expired, match="a noded that has ended"):
                result(await deliver(at.cluster, trip), trip)
            at.cluster.network.faults.clear()
            await asking
            # Its caller is told the new clock with the refusal, and just asks again.
            await at.gamma.ensure_gone(instance=at.web1)
            assert await at.names() == []

    simulate(scenario())


def test_a_grant_that_comes_late_deposes_nobody() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            line = Line(cluster.network, cluster.machines["beta"])
            beta = Nodes(line, Epoch(0), cluster.random)
            gamma = beta.service(Mastership, cluster.config.node("gamma"))
            epoch = (await gamma.vote()).epoch
            holding = Holding("mastership.grant")
            cluster.network.faults.append(holding)
            with pytest.raises(Unreachable):
                await gamma.grant(epoch=Epoch(epoch + 1), master=NodeName("beta"))
            [late] = holding.held
            with pytest.raises(Expired):
                result(await deliver(cluster, late), late)
            await cluster.run(create("web1", "gamma"))
            assert (await gamma.vote()).master == "alpha"

    simulate(scenario())
