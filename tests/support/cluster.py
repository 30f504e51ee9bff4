"""A whole cluster in one process and in virtual time, run by one seed.

    async with simulated_cluster(nodes=3, seed=7) as cluster:
        await cluster.run(CreateInstance(…))

Coordinators and noded's handlers are the real ones. What is outside of them is faked: network,
guests, disks, power, clock. The state files are real, below a directory in memory; a power cut
takes what of them was not synced.
"""

import asyncio
import shutil
import sqlite3
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from common.errors import GntError
from common.model.job import Job, Status
from common.model.node import Node
from common.names import JobId
from common.tasks import Background
from coordinator.jobs.running import ended
from coordinator.operations.base import Operation
from coordinator.quorum.question import Mode, Word
from coordinator.state.config import Config
from coordinator.state.state import State
from noded.copies.fake import FakeWires
from noded.copies.fake_between import FakeBridge
from noded.hypervisor.fake_world import FakeWorld
from noded.replica.tables import read_stamp
from noded.storage.drbd.fake_end import End
from noded.storage.drbd.fake_pairs import FakePairs
from noded.storage.fake import FakeFiles
from tests.support.contents import Contents
from tests.support.coordinators import Coordinator
from tests.support.disk import Disk
from tests.support.image import BEGINNING, NAMES, check_identity_once, images
from tests.support.machine import EMPTY, Machine
from tests.support.network import Network
from tests.support.snapshot import Snapshot, take_snapshot

MEMORY_DISK = Path("/dev/shm")
LONGEST_JOB_S = 3600.0


class SimulatedCluster:
    """Machines, wires, and at most one coordinator on each machine."""

    def __init__(
        self,
        root: Path,
        names: tuple[str, ...],
        candidates: int,
        strangers: int,
        random: Random,
        bridge: FakeBridge | None = None,
    ) -> None:
        self.random = random
        self.network = Network(random)
        self.disk = Disk(root, random)
        self.world = FakeWorld()
        self.world.reaches = self.network.reaches
        self.world.machine_at = lambda ip: self.network.place_at(ip).ip
        self.wires = FakeWires(
            self.network.reaches, bridge=bridge or FakeBridge(), cluster=str(root)
        )
        self.shared = FakeFiles()
        self.pairs = FakePairs(self.network.reaches)
        self.names = names
        every, holds = NAMES[: len(names) + strangers], images(names, candidates)
        contents: list[Contents] = []
        self.machines = {
            name: Machine(
                name,
                root / name,
                disk=self.disk,
                holds=holds.get(name, EMPTY),
                world=self.world,
                wires=self.wires,
                shared=self.shared,
                pairs=self.pairs,
                contents=contents,
                now=self.now,
            )
            for name in every
        }
        for machine in self.machines.values():
            self.network.plug_in(machine)
        self.pairs.on_copy = self._copy_content
        self._master: Coordinator | None = None
        self._later = Background()
        self.coordinators: list[Coordinator] = []  # all that ever were

    def now(self) -> float:
        """Seconds since 1970, on every clock that is right."""
        return BEGINNING + asyncio.get_running_loop().time()

    def _copy_content(self, source: End, target: End) -> None:
        """Have the volume below one end of a mirrored disk hold what is below the other."""
        by_address = {machine.ip: machine.written for machine in self.machines.values()}
        assert source.copy is not None
        assert target.copy is not None
        theirs = by_address[source.address]
        by_address[target.address].copy_from(theirs, source.copy.data, target.copy.data)

    # Coordinators

    @property
    def master(self) -> Coordinator:
        """The coordinator that was started last."""
        assert self._master is not None
        return self._master

    def master_is(self, coordinator: Coordinator) -> None:
        """Send jobs to this one from now on."""
        self._master = coordinator

    @property
    def state(self) -> State:
        return self.master.running.store.state

    @property
    def config(self) -> Config:
        return self.state.config

    def masters(self) -> list[Coordinator]:
        """Return the coordinators that believe to be master."""
        return [c for c in self.coordinators if c.is_alive and c.is_serving]

    def find_coordinator(self, name: str) -> Coordinator:
        """Return the coordinator that was started last on a machine and became master."""
        return next(c for c in reversed(self.coordinators) if c.name == name and c.master)

    def coordinator(self, name: str) -> Coordinator:
        """Return a new coordinator process on a machine; it is not started yet."""
        made = Coordinator(self.machines[name], self.network, self.random)
        self.coordinators.append(made)
        return made

    async def start_master(
        self, name: str, mode: Mode = Mode.START, word: Word = Word.NONE
    ) -> Coordinator:
        """Start a coordinator on a machine.

        Raises:
            GntError: it does not become master.
        """
        starting = self.coordinator(name)
        self._master = starting
        await starting.start(mode, word)
        return starting

    async def take_over(self, name: str, word: Word = Word.NONE) -> Coordinator:
        """Do what ``gnt-cluster master-failover`` does.

        Raises:
            GntError: it does not become master.
        """
        taking = self.coordinator(name)
        try:
            needed = await taking.take_over(word)
        finally:
            await taking.kill()
        return await self.start_master(name, word=needed)

    async def crash_master(self) -> None:
        """Kill the coordinator; noded on its node stays."""
        await self.master.kill()

    # Machines

    async def lose_power(self, name: str) -> None:
        """Switch a machine off: noded, coordinator and guests are gone."""
        for coordinator in self.coordinators:
            if coordinator.name == name:
                await coordinator.kill()
        await self.network.forget(name)
        await self.machines[name].lose_power()

    def machine_of(self, node: Node) -> Machine:
        """Return the machine at a node's address, whatever the node is called by now."""
        return self.machines[self.network.place_at(node.primary_ip).name]

    async def restart_noded(self, name: str, away_s: float = 2.0) -> None:
        """Kill noded on a machine; it is started again after a while."""
        machine = self.machines[name]
        await machine.kill_noded()

        async def start() -> None:
            await asyncio.sleep(away_s)
            await machine.start_noded()

        self._later.start(start(), name=f"start noded on {name}")

    def suspend(self, name: str) -> None:
        """Stop noded and the coordinators on a machine, as SIGSTOP does."""
        self.machines[name].process.suspend()
        for coordinator in self.coordinators:
            if coordinator.name == name:
                coordinator.suspend()

    def resume(self, name: str) -> None:
        """Have what was stopped on a machine go on."""
        self.machines[name].process.resume()
        for coordinator in self.coordinators:
            if coordinator.name == name:
                coordinator.resume()

    def cut(self, source: str, target: str, *, one_way: bool = False) -> None:
        self.network.cut(source, target, one_way=one_way)

    def heal(self) -> None:
        self.network.heal()

    # Jobs

    async def run(self, operation: Operation[Any, Any], **common: Any) -> Any:
        """Run one operation as a job, to its end; return its result.

        Raises:
            GntError: as it failed.
        """
        return outcome(await self.finished(await self.submit(operation, **common)))

    async def submit(self, *operations: Operation[Any, Any], **common: Any) -> JobId:
        """Submit a job of these operations, as a client does."""
        number = await self.master.luxi("SubmitJob", [op.to_input() | common for op in operations])
        return JobId(number)

    async def finished(self, number: JobId) -> Job:
        """Return the job when it has ended."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + LONGEST_JOB_S
        while True:
            coordinator = self.master
            queue = coordinator.running.queue
            replaced = asyncio.ensure_future(coordinator.replaced.wait())
            ending = asyncio.ensure_future(
                queue.wait_for_change(number, lambda _: False, deadline - loop.time())
            )
            await asyncio.wait({replaced, ending}, return_when=asyncio.FIRST_COMPLETED)
            job = ending.result() if ending.done() else None
            if job is not None and not job.status.is_final:
                await asyncio.sleep(0.1)  # its queue has been closed, or is about to be filled
            goes_on = coordinator.is_alive and loop.time() < deadline
            await ended(replaced, ending)
            if job is not None and job.status.is_final:
                return job
            assert goes_on, f"job {number} does not end: {queue.find(number)}"

    # What there is

    async def settle(self, seconds: float = 12.0) -> None:
        """Let the cluster come to rest: replicas follow, ssconf is published."""
        await asyncio.sleep(seconds)

    async def snapshot(self) -> Snapshot:
        """Take in everything, once nothing changes any more by itself."""
        self.world.settle()
        return await take_snapshot(self.config, self.machines, self.shared, self.held())

    def held(self) -> tuple[str, ...]:
        """Return the locks that jobs hold, and the room that they are promised."""
        master = self.master.running
        promises = master._around.placing.promises.standing()
        return tuple(map(str, (*master.locks.rows(), *promises)))

    def check_replicas(self) -> None:
        """Hold every candidate's copy of the state against the master's."""
        for node in self.config.candidates():
            # Not as noded opens it, which looks whether all of the file is whole.
            with closing(sqlite3.connect(self.machine_of(node).paths.replica)) as replica:
                stamp = read_stamp(replica)
            assert stamp == self.state.stamp, f"{node.name} has {stamp}, not {self.state.stamp}"

    async def close(self) -> None:
        await self._later.close()
        await self.network.close()
        for coordinator in self.coordinators:
            await coordinator.kill()
        for machine in self.machines.values():
            await machine.close()


@asynccontextmanager
async def simulated_cluster(
    nodes: int = 3,
    *,
    seed: int = 0,
    candidates: int = 10,
    strangers: int = 0,
    bridge: FakeBridge | None = None,
) -> AsyncIterator[SimulatedCluster]:
    """Run a cluster for the length of a block; its first node, alpha, is the master.

    Args:
        nodes: how many there are: alpha, beta, gamma, …
        seed: of all chance in it; told when the block fails.
        candidates: size of the candidate pool.
        strangers: further machines with a noded, of no cluster.
        bridge: over which disks are sent to another one.
    """
    root = _new_directory()
    try:
        names = NAMES[:nodes]
        cluster = SimulatedCluster(root, names, candidates, strangers, Random(seed), bridge)
        with (
            patch("noded.identity.directory.check_identity", check_identity_once),
            patch("noded.handlers.group_files.id_of", lambda _: None),  # whatever this machine has
            cluster.disk.watched(),
        ):
            try:
                for machine in cluster.machines.values():
                    await machine.start_noded()
                await cluster.start_master(names[0])
                yield cluster
            finally:
                await cluster.close()
    except BaseException as error:
        error.add_note(f"simulated with seed {seed}; GANTRY_SIM_SEED={seed} repeats it")
        raise
    finally:
        shutil.rmtree(root)


def _new_directory() -> Path:
    """Make a directory, in memory where that can be had: there fsync costs nothing."""
    place = MEMORY_DISK if MEMORY_DISK.is_dir() else None
    return Path(tempfile.mkdtemp(prefix="gantry-sim-", dir=place))


def outcome(job: Job) -> Any:
    """Return the result of a job's last operation.

    Raises:
        GntError: as the job failed.
    """
    if job.status is Status.SUCCESS:
        return job.ops[-1].result
    failure = next(op.failure for op in job.ops if op.failure is not None)
    raise GntError.from_code(failure.code, failure.message, dict(failure.detail))
