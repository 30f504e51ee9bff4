"""Trouble by chance: operators give orders while everything around them breaks.

What they do is in ``operators``, what breaks in ``trouble``, and what holds all the same in
``invariants``.
"""

import asyncio
from random import Random

from tests.sim.invariants import Invariants
from tests.sim.operators import Operators
from tests.sim.trouble import Trouble
from tests.support.cluster import SimulatedCluster
from tests.support.coordinators import Coordinator

PEACE_LIMIT_S = 900.0
LOOK_EVERY_S = 0.05


class Chaos:
    """One run of it on one cluster."""

    def __init__(self, cluster: SimulatedCluster, random: Random) -> None:
        self._cluster, self._random = cluster, random
        self.story: list[str] = []  # what happened, for whoever has to understand a failure
        self._invariants = Invariants(cluster)
        self._operators = Operators(cluster, random, self._invariants, self._note)
        self._trouble = Trouble(cluster, random, self._invariants, self._operators, self._note)

    async def rage(self, seconds: float) -> None:
        """Make trouble for so long; then make peace, and check what has become of everything."""
        try:
            async with asyncio.TaskGroup() as group:
                work = [self._operators.give_orders(), self._trouble.make(), self._watch()]
                tasks = [group.create_task(each) for each in work]
                await asyncio.sleep(seconds)
                for task in tasks[:2]:
                    task.cancel()
                await self._make_peace()
                tasks[2].cancel()
            await self._invariants.check()
            await self._invariants.check_in_the_end()
        except BaseException as error:
            error.add_note("\n".join(self.story))
            raise

    async def _watch(self) -> None:
        while True:
            await self._invariants.check()
            await asyncio.sleep(LOOK_EVERY_S)

    async def _make_peace(self) -> None:
        self._note("peace")
        ending = asyncio.ensure_future(self._trouble.end())
        limit = self._cluster.now() + PEACE_LIMIT_S
        while not (ending.done() and any(map(_is_quiet, self._cluster.masters()))):
            assert self._cluster.now() < limit, "no master is found in peace"
            await asyncio.sleep(40)
            if not self._cluster.masters():
                await self._trouble.take_over(self._random.choice(self._cluster.names))
        await ending
        await self._trouble.hand_out_the_roster()
        await asyncio.sleep(60)
        (master,) = self._cluster.masters()
        self._cluster.master_is(master)

    def _note(self, what: str) -> None:
        self.story.append(f"{self._cluster.now() % 86_400:9.3f} {what}")


def _is_quiet(master: Coordinator) -> bool:
    store = master.running.store
    return store.writable and all(job.status.is_final for job in store.state.jobs.values())
