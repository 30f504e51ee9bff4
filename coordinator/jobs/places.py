"""Places to run: a job has one while it works, and stands in line for one before."""

import asyncio
from collections.abc import Callable

from common.model.job import Job
from common.names import JobId
from coordinator.jobs.line import Line, Rank
from coordinator.jobs.running import RunningJob


class Places:
    """Who runs, and who goes next.

    Args:
        limit: how many places there are now.
        find: gives a job that has not ended.
        may_begin: tells whether a job may begin now; who may not is out of the line.
        begin: begins a job whose turn has come.
    """

    def __init__(
        self,
        limit: Callable[[], int],
        find: Callable[[JobId], RunningJob | None],
        may_begin: Callable[[Job, Rank], bool],
        begin: Callable[[RunningJob], None],
    ) -> None:
        self._limit, self._find, self._may_begin, self._begin = limit, find, may_begin, begin
        self._line = Line()
        self._taken: set[JobId] = set()
        self._closed = False

    def close(self) -> None:
        """Have no job begin or go on any more."""
        self._closed = True

    def stand_in_line(self, running: RunningJob) -> None:
        """Have a job wait for its turn, or for another one if its priority has changed."""
        self._line.put(running.id, _rank(running))

    def before(self, job: JobId) -> int | None:
        """Return how many go before a job; None if it is not in line."""
        return self._line.before(job) if job in self._line else None

    def take(self, running: RunningJob) -> None:
        """Give a job a place, whether there is one or not."""
        self._line.leave(running.id)
        self._taken.add(running.id)

    def leave(self, job: JobId) -> None:
        """Take a job's place, in line or to run, if it has any; others may have their turn then."""
        self._line.leave(job)
        self._taken.discard(job)
        self.fill()

    async def take_again(self, running: RunningJob) -> None:
        """Wait for a place, ahead of jobs that have not begun: others wait for this one's locks."""
        running.turn = asyncio.get_running_loop().create_future()
        try:
            self.stand_in_line(running)
            self.fill()
            await running.turn
        finally:
            self._line.leave(running.id)
            running.turn = None

    def fill(self) -> None:
        """Let jobs run as long as there is room."""
        while not self._closed and len(self._taken) < self._limit():
            number = self._line.pop()
            if number is None:
                return
            running = self._find(number)
            if running is None:
                continue
            if running.turn is None:
                if self._may_begin(running.job, _rank(running)):
                    self._taken.add(number)
                    self._begin(running)
            elif not running.turn.done():  # else it is being cancelled
                self._taken.add(number)
                running.turn.set_result(None)


def _rank(running: RunningJob) -> Rank:
    ops = running.job.ops
    priority = min((op.priority for op in ops if not op.status.is_final), default=0)
    return Rank(may_wait=running.turn is None, priority=priority)
