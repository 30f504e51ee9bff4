"""Cancel jobs: one that waits ends at once, of one that runs what it did is undone first."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from common.errors import Cancelled, Unreachable
from common.model.job import Status
from common.names import JobId
from common.tasks import Background
from coordinator.jobs.executor import Executor
from coordinator.jobs.known import KnownJobs
from coordinator.jobs.places import Places
from coordinator.jobs.running import RunningJob
from coordinator.jobs.storing import stored
from coordinator.state.store import Store

RETURN_PATIENCE_S = 20.0  # for a job that is just passing its point of no return


class Cancelling:
    """Heeds what operators wish, and promises them no more than will come true.

    Args:
        jobs: those there are.
        store: where wishes are kept, so that a successor heeds them, too.
        places: which a cancelled job does not need any more.
        executor: ends jobs that have not begun.
        background: owns what is still being stored when nobody waits for it any more.
        ended: is told of a job that has ended so.
    """

    def __init__(
        self,
        jobs: KnownJobs,
        store: Store,
        places: Places,
        executor: Executor,
        background: Background,
        ended: Callable[[RunningJob], None],
    ) -> None:
        self._jobs, self._store, self._places, self._executor = jobs, store, places, executor
        self._background, self._ended = background, ended

    async def cancel(self, number: JobId) -> tuple[bool, str]:
        """Ask a job to end; see ``JobQueue.cancel``."""
        job = await self._jobs.get(number)
        running = self._jobs.unended(number)
        if running is None:
            return False, f"Job {number} has ended already ({job.status})."
        if running.task is None:
            self._places.leave(number)
            await stored(self._end(running), self._background, _unknown)
            return True, f"Job {number} is cancelled."
        if refusal := running.too_late():
            return False, refusal
        running.change(cancel_wanted=True)
        for index, op in enumerate(running.job.ops):
            if op.status is Status.WAITING:  # one that runs may yet turn out to be too far
                running.change_op(index, status=Status.CANCELING)
        running.cancel_wanted.set()
        await stored(self._store.commit([running.put()]), self._background, _unknown)
        with suppress(TimeoutError):
            async with asyncio.timeout(RETURN_PATIENCE_S):
                while running.is_returning:
                    await running.next_change()
        if running.is_returning:
            return False, f"Job {number} can perhaps not be stopped; “gnt-job why {number}” tells."
        undone = running.job.status is Status.CANCELED or running.is_undoing
        if not undone and (refusal := running.too_late()):
            return False, refusal
        # That it is being undone, if it is, and is shown already.
        await stored(self._store.commit(()), self._background, _unknown)
        return True, f"Job {number} is being cancelled; what it did is undone first."

    async def _end(self, running: RunningJob) -> None:
        """End a job that has not begun."""
        await self._executor.give_up(running, Cancelled(f"Job {running.id} was cancelled."))
        self._ended(running)


def _unknown() -> Unreachable:
    return Unreachable(
        "This could not be stored on a majority of the master candidates yet. This "
        "coordinator heeds it; one that takes over meanwhile may not know of it."
    )
