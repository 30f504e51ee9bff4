"""Trouble by chance: operators give orders while everything around them breaks.

What is watched all the time: acknowledged states form one history, no instance runs twice,
and an order that was taken is carried out or says why not.
"""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from common.errors import GntError
from common.model.commit import Commit
from common.model.job import Job
from common.model.stamp import Stamp
from common.names import InstanceName, JobId, Serial
from common.noderpc.instances import GuestState
from common.noderpc.replica import Behind
from coordinator.operations.base import Operation
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.test.delay import Delay
from noded.replica.store import ReplicaFile
from tests.sim.stories import create
from tests.support.cluster import SimulatedCluster
from tests.support.coordinators import Coordinator
from tests.support.faults import Lossy

ORDERS_EVERY_S, TROUBLE_EVERY_S = 3.0, 8.0
PEACE_LIMIT_S = 900.0


class Chaos:
    """One run of it on one cluster."""

    def __init__(self, cluster: SimulatedCluster, random: Random) -> None:
        self._cluster, self._random = cluster, random
        self.taken: list[JobId] = []
        self.story: list[str] = []  # what happened, for whoever has to understand a failure
        self._history: dict[int, str] = {}  # digests of acknowledged states, by serial
        self._lossy = Lossy(random, 0.02)

    async def rage(self, seconds: float) -> None:
        """Make trouble for so long; then make peace, and check what has become of everything."""
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._give_orders()),
                    group.create_task(self._make_trouble()),
                    group.create_task(self._watch()),
                ]
                await asyncio.sleep(seconds)
                for task in tasks[:2]:
                    task.cancel()
                await self._make_peace()
                tasks[2].cancel()
            self._check_history()
            await self._check_jobs()
            await self._check_guests()
        except BaseException as error:
            error.add_note("\n".join(self.story))
            raise

    async def _give_orders(self) -> None:
        while True:
            await asyncio.sleep(self._random.expovariate(1 / ORDERS_EVERY_S))
            order = self._order()
            master = self._random.choice(self._masters() or [None])
            if master is None:
                continue
            try:
                async with asyncio.timeout(60):
                    number = await master.luxi("SubmitJob", [order.to_input()])
            except (GntError, OSError, TimeoutError) as error:
                self._note(f"{master.name} refuses {order.summary()}: {error}")
            else:
                self._note(f"{master.name} takes {order.summary()} as job {number}")
                self.taken.append(number)

    def _order(self) -> Operation[Any]:
        name = InstanceName(f"web{self._random.randrange(4)}")
        make: list[Callable[[], Operation[Any]]] = [
            lambda: create(name),
            lambda: create(name),
            lambda: MigrateInstance(instance_name=name),
            lambda: MigrateInstance(instance_name=name, cleanup=True),
            lambda: RemoveInstance(instance_name=name),
            lambda: ShutDownInstance(instance_name=name),
            lambda: StartInstance(instance_name=name),
            lambda: Delay(duration=self._random.uniform(0, 10)),
        ]
        return self._random.choice(make)()

    async def _make_trouble(self) -> None:
        every: list[Callable[[], Awaitable[None]]] = [
            self._kill_a_coordinator, self._start_a_coordinator, self._start_a_coordinator,
            self._take_over, self._take_over, self._isolate, self._cut, self._heal, self._heal,
            self._restart_a_noded, self._lose_calls, self._power_a_machine_down_and_up,
        ]  # fmt: skip
        while True:
            await asyncio.sleep(self._random.expovariate(1 / TROUBLE_EVERY_S))
            await self._random.choice(every)()

    async def _kill_a_coordinator(self) -> None:
        for master in self._masters()[:1]:
            self._note(f"the coordinator on {master.name} is killed")
            await master.kill()

    async def _start_a_coordinator(self) -> None:
        name = self._random.choice(self._cluster.names)
        if not any(master.name == name for master in self._masters()):
            await self._try(f"start on {name}", self._cluster.start_master(name))

    async def _take_over(self) -> None:
        name = self._random.choice(self._cluster.names)
        if not any(master.name == name for master in self._masters()):
            await self._try(f"take-over by {name}", self._cluster.take_over(name))

    async def _isolate(self) -> None:
        name = self._random.choice(self._cluster.names)
        self._note(f"{name} is cut off")
        self._cluster.network.isolate(name)

    async def _cut(self) -> None:
        one, other = self._random.sample(self._cluster.names, 2)
        one_way = self._random.random() < 0.5
        self._note(f"{one} is cut from {other}{', one way' if one_way else ''}")
        self._cluster.cut(one, other, one_way=one_way)

    async def _heal(self) -> None:
        self._note("the network is mended")
        self._cluster.heal()
        self._cluster.network.faults.clear()

    async def _restart_a_noded(self) -> None:
        machine = self._cluster.machines[self._random.choice(self._cluster.names)]
        self._note(f"noded on {machine.name} is killed and started again")
        await machine.kill_noded()
        await asyncio.sleep(self._random.uniform(0, 5))
        await machine.start_noded()

    async def _power_a_machine_down_and_up(self) -> None:
        name = self._random.choice(self._cluster.names)
        self._note(f"{name} loses power for a while")
        await self._cluster.lose_power(name)
        await asyncio.sleep(self._random.uniform(1, 20))
        await self._cluster.machines[name].boot()

    async def _lose_calls(self) -> None:
        if self._lossy not in self._cluster.network.faults:
            self._note("calls and answers get lost")
            self._cluster.network.faults.append(self._lossy)

    async def _try(self, what: str, attempt: Awaitable[Coordinator]) -> None:
        try:
            async with asyncio.timeout(60):
                coordinator = await attempt
        except (GntError, OSError, TimeoutError) as error:
            self._note(f"{what} fails: {error}")
        else:
            self._note(f"{what} succeeds, epoch {coordinator.running.confirmed.won.epoch}")

    async def _make_peace(self) -> None:
        await self._heal()
        limit = self._cluster.now() + PEACE_LIMIT_S
        while not any(m.running.store.writable and _is_quiet(m) for m in self._masters()):
            assert self._cluster.now() < limit, "no master is found in peace"
            await asyncio.sleep(40)
            if not self._masters():
                name = self._random.choice(self._cluster.names)
                await self._try(f"take-over by {name}", self._cluster.take_over(name))
        await asyncio.sleep(60)
        (master,) = self._masters()
        self._cluster.master_is(master)

    async def _watch(self) -> None:
        """Look at all masters and guests every so often."""
        while True:
            for master in self._masters():
                stamp = master.running.store.state.stamp
                if stamp.epoch == master.running.confirmed.won.epoch:
                    self._acknowledged(stamp, master.name)
            await self._check_guests()
            await asyncio.sleep(0.05)

    def _acknowledged(self, stamp: Stamp, by: str) -> None:
        known = self._history.setdefault(stamp.serial, stamp.digest)
        assert known == stamp.digest, f"{by} acknowledged another commit {stamp.serial}"

    def _check_history(self) -> None:
        """Hold what was acknowledged against what there is in the end."""
        newest = self._cluster.state.stamp
        node = self._cluster.config.master()
        replica = ReplicaFile(self._cluster.machines[node.name].paths.replica)
        kept: dict[int, str] = {c.serial: c.digest for c in _kept(replica)}
        replica.close()
        assert max(self._history) <= newest.serial, "an acknowledged commit is lost"
        for serial, digest in self._history.items():
            assert kept.get(serial, digest) == digest, f"commit {serial} was replaced"

    async def _check_jobs(self) -> None:
        for number in self.taken:
            job: Job = await self._cluster.finished(number)
            assert job.status.is_final

    async def _check_guests(self) -> None:
        running: dict[str, str] = {}
        for machine in self._cluster.machines.values():
            for guest in await machine.guest_list():
                if guest.state is GuestState.RUNNING:
                    other = running.setdefault(guest.id, machine.name)
                    assert other == machine.name, f"{guest.name} runs on {other} and {machine.name}"

    def _masters(self) -> list[Coordinator]:
        return [c for c in self._cluster.coordinators if c.is_alive and c.master]

    def _note(self, what: str) -> None:
        self.story.append(f"{self._cluster.now() % 86_400:9.3f} {what}")


def _kept(replica: ReplicaFile) -> tuple[Commit, ...]:
    """Return the newest commits that a replica keeps."""
    for serial in range(replica.stamp().serial):
        try:
            return replica.commits_after(Serial(serial))
        except Behind:
            continue
    return ()


def _is_quiet(master: Coordinator) -> bool:
    return all(job.status.is_final for job in master.running.store.state.jobs.values())
