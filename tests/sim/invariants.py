"""What holds in every moment, whatever breaks; looked at all the time while chaos rages."""

from collections.abc import Mapping
from typing import Any

from common.messages import to_json
from common.model.job import Failure, Job, OperationRecord, Status
from common.model.stamp import Stamp
from common.names import DiskId, JobId
from common.noderpc.disks import Access
from common.noderpc.instances import GuestState
from coordinator.master.master import Master
from coordinator.operations.locking import from_rows
from tests.sim.foreign import is_foreign
from tests.sim.kept_data import KeptData
from tests.support.cluster import SimulatedCluster
from tests.support.coordinators import Coordinator


class Invariants:
    """Remembers what was acknowledged and holds everything later against it.

    Acknowledged is what a master shows once a commit of its own epoch is durable.
    """

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self.taken: dict[JobId, bytes] = {}  # jobs whose submission was answered: what was asked
        self.cancelled: set[JobId] = set()  # jobs whose cancellation was promised
        self.history: dict[int, str] = {}  # digests of acknowledged states, by serial
        self.newest = Stamp()
        self.liars: set[str] = set()  # nodes that may have told anything
        self._data = KeptData(cluster)
        self._asked: dict[JobId, bytes] = {}  # the operations of every job that was seen
        self._ended: dict[JobId, Job] = {}
        self._jobs: Mapping[JobId, Job] = {}  # as they were looked at last
        self._running: set[tuple[Master, JobId]] = set()

    def takes(self, number: JobId, order: dict[str, Any]) -> None:
        """Note that a job was accepted."""
        assert number not in self.taken, f"job {number} was given twice"
        self.taken[number] = to_json([order["OP_ID"]])

    async def check(self) -> None:
        """Look at all masters and all guests."""
        for master in self._cluster.masters():
            state = master.running.store.state
            if state.stamp.epoch == master.running.confirmed.won.epoch:
                self._acknowledged(state.stamp, master.name)
                is_old = state.stamp.serial < self.newest.serial  # of one that was deposed
                if not is_old:
                    self._data.check(state)
                if not is_old and state.jobs is not self._jobs:
                    self._check_jobs(state.jobs)
                self._check_locks(master)
        self.check_disks()
        await self.check_guests()

    async def check_guests(self) -> None:
        """No guest runs twice."""
        running: dict[str, str] = {}
        for machine in self._cluster.machines.values():
            for guest in await machine.guest_list():
                if guest.state is GuestState.RUNNING:
                    other = running.setdefault(guest.id, machine.name)
                    assert other == machine.name, f"{guest.name} runs on {other} and {machine.name}"

    def check_disks(self) -> None:
        """Where several nodes have a disk, each of them knows of the others."""
        held: dict[DiskId, dict[str, Access]] = {}
        for machine in self._cluster.machines.values():
            # Of a disk that only one node has, the one on another is being made of it.
            local = {report.id for report in machine.files.disks.values()}
            for disk, access in machine.attached.items():
                if disk not in local:
                    held.setdefault(disk, {})[machine.name] = access
        for disk_id, by in held.items():
            used = [access for access in by.values() if access is not Access.STANDBY]
            alone = Access.SOLE in used
            assert not alone or len(used) == 1, f"the disk {disk_id} is used by several: {by}"
        lost = self._cluster.pairs.lost
        assert not lost, f"what was acknowledged is lost: {lost}"

    async def check_in_the_end(self) -> None:
        """In peace nothing is missing: no commit, no job; all have ended, as was promised."""
        assert self.newest.serial <= self._cluster.state.stamp.serial, "a commit is lost"
        for number, asked in self.taken.items():
            job = await self._cluster.finished(number)
            assert job.status.is_final
            assert _kinds(job) == asked, f"job {number} is another one"
        for number in self.cancelled:
            job = await self._cluster.finished(number)
            assert job.status is not Status.SUCCESS, f"job {number} was cancelled, and succeeded"
        config = self._cluster.config
        owned = [disk for instance in config.instances.values() for disk in instance.disks]
        owned += [disk.uuid for disk in config.detached_disks()]
        assert sorted(owned) == sorted(config.disks), "a disk has several owners, or none"
        held = self._cluster.held()
        assert not held, f"locks or room are held for nobody: {held}"
        self._cluster.check_replicas()

    def _acknowledged(self, stamp: Stamp, by: str) -> None:
        known = self.history.setdefault(stamp.serial, stamp.digest)
        assert known == stamp.digest, f"{by} acknowledged another commit {stamp.serial}"
        if stamp.serial > self.newest.serial:
            self.newest = stamp

    def _is_bug(self, failure: Failure) -> bool:
        """Tell whether something is at fault; who lies may say so of itself at any time."""
        by_a_liar = any(failure.message.startswith(f"{name}: ") for name in self.liars)
        return failure.code == "bug" and not by_a_liar

    def _check_jobs(self, jobs: Mapping[JobId, Job]) -> None:
        """One job has one number for ever, takes each step once, and ends once."""
        for number, job in jobs.items():
            if self._jobs.get(number) is job:
                continue
            asked = self._asked.setdefault(number, _kinds(job))
            assert asked == _kinds(job), f"number {number} is given to another job"
            before = self._ended.get(number)
            if before is not None:
                assert _end(before) == _end(job), f"job {number} ended twice: {before}, {job}"
            elif job.status.is_final:
                self._ended[number] = job
                # Those after the first only say, with its code, that they were not begun.
                failure = next((op.failure for op in job.ops if op.failure), None)
                is_bug = failure is not None and self._is_bug(failure)
                assert not is_bug, f"job {number} came upon a fault of ours: {failure}"
            for op in job.ops:
                entries = [(entry.event, entry.step) for entry in op.journal]
                assert len(entries) == len(set(entries)), f"job {number} repeats a step: {entries}"
        self._jobs = jobs

    def _check_locks(self, master: Coordinator) -> None:
        """A job that runs holds exactly what its row says, also after it was resumed."""
        table, jobs = master.running.locks._table, master.running.store.state.jobs
        reign = master.running  # one that was in doubt is resumed anew
        running = {(reign, n): op for n, job in jobs.items() for op in job.ops if _runs(op)}
        # One that was not seen at the last look may just be about to take, or to record, them.
        for (_, number), op in running.items():
            newest = master.running.queue.find(number)
            if (reign, number) not in self._running or newest is None or newest.status.is_final:
                continue
            held = table.holding(f"job {number}")  # type: ignore[arg-type]  # an Owner
            wanted = dict(from_rows(op.locks).locks)
            assert held is not None, f"job {number} runs on {master.name} without its locks"
            assert dict(held) == wanted, f"job {number} holds {held}, not {wanted}"
        self._running = set(running)


def _runs(op: OperationRecord) -> bool:
    """One of another version ends as soon as it is looked at, and nobody waits for its locks."""
    return op.plan is not None and not op.status.is_final and not is_foreign(op)


def _kinds(job: Job) -> bytes:
    return to_json([op.input["OP_ID"] for op in job.ops])


def _end(job: Job) -> tuple[Any, ...]:
    return tuple((op.status, op.result, op.failure, op.ended) for op in job.ops)
