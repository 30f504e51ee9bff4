"""A job in memory while it runs: the newest version of its row, and who watches it."""

import asyncio
from typing import Any

from msgspec.structs import replace

from common.model.job import Job, LogEntry, OperationRecord
from common.names import JobId
from coordinator.locks.names import Owner
from coordinator.state.rows import Put


class RunningJob:
    """The newest version of a job; not all of it need be durable yet.

    Log messages and changes of status reach the disk with the next write that matters, so
    that they cost none of their own. Its end is shown only once it is durable.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.shown = job  # what others see
        self.cancel_wanted = asyncio.Event()
        self.past_return = False  # a point of no return was passed
        self.task: asyncio.Task[None] | None = None
        self._watchers: set[asyncio.Future[None]] = set()

    @property
    def id(self) -> JobId:
        return self.job.id

    @property
    def owner(self) -> Owner:
        """Who holds its locks and makes its promises."""
        return Owner(f"job {self.id}")

    def put(self) -> Put:
        """The row as it is now."""
        return Put(self.job)

    def change(self, **fields: Any) -> None:
        self.job = replace(self.job, **fields)
        if not self.job.status.is_final:
            self.show()

    def show(self) -> None:
        """Let others see the job as it is now."""
        self.shown = self.job
        for future in self._watchers:
            if not future.done():
                future.set_result(None)

    def change_op(self, index: int, **fields: Any) -> None:
        ops = list(self.job.ops)
        ops[index] = replace(ops[index], **fields)
        self.change(ops=tuple(ops))

    def op(self, index: int) -> OperationRecord:
        return self.job.ops[index]

    def end_op(self, index: int, **fields: Any) -> None:
        """Change an operation for the last time, forgetting what was only needed to run it."""
        op = self.op(index)
        wiped = {key: value for key, value in op.input.items() if key not in op.secret}
        self.change_op(index, input=wiped, plan=None, **fields)

    def log(self, index: int, now: float, message: str) -> None:
        """Add a log entry; serials count through the whole job."""
        serial = 1 + sum(len(op.log) for op in self.job.ops)
        entry = LogEntry(serial=serial, time=now, message=message)
        self.change_op(index, log=(*self.op(index).log, entry))

    async def next_change(self) -> None:
        """Return when the job has changed after this call."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watchers.add(future)
        try:
            await future
        finally:
            self._watchers.discard(future)


async def ended(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks and return when they have ended, however they do."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # whoever wanted it may have been cancelled at the same moment
