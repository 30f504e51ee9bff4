"""What is stranger than breaking: a node that lies, a coordinator of another version."""

import asyncio
from collections.abc import Callable
from random import Random

from msgspec.structs import replace

from common.errors import GntError
from common.model.job import Job, OperationRecord, Status
from common.names import JobId
from coordinator.operations.follow_up import FollowUp
from coordinator.operations.test.delay import Delay
from coordinator.state.rows import Put
from coordinator.state.state import State
from tests.sim.foreign import BEGUN, HALF_DONE, QUEUED, half_done, is_foreign
from tests.sim.invariants import Invariants
from tests.support.cluster import SimulatedCluster
from tests.support.coordinators import Coordinator
from tests.support.lying import Lying
from tests.support.network import Trip

PATIENCE_S = 60.0
# Of its own guests nobody knows but the node: who lies there can have one run twice, or lost. And
# who is asked to store the state is about to become a candidate: those are trusted.
NOT_LIED_ABOUT = ("instances", "tasks", "replica")


class Oddities:
    """Has them happen; ``note`` is told."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        random: Random,
        invariants: Invariants,
        note: Callable[[str], None],
    ) -> None:
        self._cluster, self._random = cluster, random
        self._invariants, self._note = invariants, note

    async def have_a_node_lie(self) -> None:
        """Until it is told not to, or becomes a candidate."""
        regular = [name for name in self._cluster.names if self._is_regular(name)]
        if self.stop_lying() or not regular:
            return
        liar = self._random.choice(regular)
        self._note(f"{liar} lies")
        self._invariants.liars.add(liar)

        def is_lied_about(trip: Trip) -> bool:
            service = trip.call.name.partition(".")[0]
            return trip.target == liar and service not in NOT_LIED_ABOUT and self._is_regular(liar)

        self._cluster.network.faults.append(Lying(self._random, is_lied_about))

    def stop_lying(self) -> bool:
        """Have all nodes tell the truth; return whether one did not."""
        faults = self._cluster.network.faults
        lying = [fault for fault in faults if isinstance(fault, Lying)]
        for fault in lying:
            self._note("all nodes tell the truth")
            faults.remove(fault)
        return bool(lying)

    def _is_regular(self, name: str) -> bool:
        return not self._cluster.machines[name].paths.replica.exists()

    async def leave_a_job_of_another_version(self) -> None:
        """Have the coordinator, as if of another version, end and leave what ours cannot read."""
        for master in self._cluster.masters()[:1]:
            left = self._half_done(master) if self._random.random() < 0.5 else None
            try:
                async with asyncio.timeout(PATIENCE_S):
                    number = await (self._step(master, left) if left else self._job(master))
            except (GntError, OSError, TimeoutError) as error:
                self._note(f"{master.name} leaves no job of another version: {error}")
            else:
                await self._invariants.check()  # what was stored is known to be, though it ends now
                self._note(f"{master.name} leaves job {number} as one of another version")
            finally:  # also when chaos ends meanwhile: this one would never look at such a job
                await master.kill()

    def _half_done(self, master: Coordinator) -> Job | None:
        jobs = master.running.store.state.jobs.values()
        begun = [job for job in jobs if any(_is_begun(op) for op in job.ops)]
        return self._random.choice(begun) if begun else None

    async def _step(self, master: Coordinator, left: Job) -> JobId:
        """Add a step that nobody here knows to what a job has begun."""

        def with_step(state: State) -> list[Put]:
            job = state.jobs.get(left.id)
            if job is None:
                return []
            ops = (
                replace(op, journal=(*op.journal, *BEGUN)) if _is_begun(op) else op
                for op in job.ops
            )
            return [Put(replace(job, ops=tuple(ops)))]

        await master.running.store.commit(with_step)
        return left.id

    async def _job(self, master: Coordinator) -> JobId:
        """Store a whole job of which nobody here knows what to make."""
        if self._random.random() < 0.5:
            record = self._random.choice(list(QUEUED.values()))
        else:
            record = await half_done(self._random.choice(list(HALF_DONE)))
        order = FollowUp(input=Delay(duration=0.0).to_input())
        _, (numbered,) = master.running.queue.read([[order]])
        await master.running.store.commit([Put(replace(numbered.job, ops=(record,)))])
        self._invariants.takes(numbered.id, record.input)
        return numbered.id


def _is_begun(op: OperationRecord) -> bool:
    return op.plan is not None and op.status is Status.RUNNING and not is_foreign(op)
