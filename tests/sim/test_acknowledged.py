"""What was acknowledged is found by every later master, whenever it takes over."""

import asyncio
from contextlib import suppress

from common.errors import GntError
from coordinator.operations.test.delay import Delay
from tests.sim.settings import create
from tests.support.clock import simulate
from tests.support.cluster import simulated_cluster
from tests.support.faults import Gate, Slow


def test_what_was_acknowledged_by_a_majority_survives_the_newest_node() -> None:
    """The candidate that lagged behind takes over, and first fetches what it missed."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            cluster.cut("alpha", "gamma")
            await cluster.run(create("web1", "alpha"))
            await cluster.crash_master()
            cluster.heal()
            await cluster.take_over("gamma")
            assert cluster.config.find_instance("web1")
            await cluster.settle()
            cluster.check_replicas()

    simulate(scenario())


def test_what_is_acknowledged_during_a_take_over_survives_it() -> None:
    """The old master goes on until the last moment, also on the node that takes over."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            old = cluster.master
            taken: list[int] = []

            async def submit() -> None:
                with suppress(GntError):
                    while True:
                        order = Delay(duration=0.0).to_input()
                        taken.append(await old.luxi("SubmitJob", [order]))

            slow = Slow(lambda t: t.source == "beta" and t.call.name == "mastership.vote", 0.02)
            cluster.network.faults.append(slow)
            submitting = asyncio.ensure_future(submit())
            await asyncio.sleep(0.1)
            await cluster.take_over("beta")
            submitting.cancel()
            assert len(taken) > 10
            assert set(taken) <= set(cluster.state.jobs)

    simulate(scenario())


def test_what_is_acknowledged_until_the_last_grant_survives_a_take_over() -> None:
    """A ballot from before its node's grant says nothing about what was stored in between."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            old = cluster.master
            gate = Gate(lambda t: t.source == "beta" and t.call.name == "mastership.grant")
            cluster.network.faults.append(gate)
            taking = asyncio.ensure_future(cluster.take_over("beta"))
            await gate.until_held(2)
            await asyncio.sleep(0.1)
            order = Delay(duration=0.0).to_input()
            # Of the candidates, beta alone is left behind: it has to fetch what it misses.
            cluster.cut("alpha", "beta")
            number = await old.luxi("SubmitJob", [order])
            cluster.heal()
            gate.opened.set()
            await taking
            assert number in cluster.state.jobs

    simulate(scenario())
