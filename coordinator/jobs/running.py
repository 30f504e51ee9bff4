"""A job in memory while it runs: the newest version of its row, and who watches it."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from msgspec.structs import replace

from common.model.job import Failure, Job, LogEntry, OperationRecord, Status, Timestamp
from common.names import JobId
from coordinator.jobs.bounds import ENTRY_CHARACTERS, cut, with_entry
from coordinator.locks.names import Owner
from coordinator.state.rows import Put

MESSAGE, DETAIL = "message", "detail"  # kinds of log entries
STRIPPED_CHARACTERS = 500


class Doing(NamedTuple):
    """What a job is at, and since when."""

    what: str
    since: Timestamp


class RunningJob:
    """The newest version of a job; not all of it need be durable yet.

    Log messages and changes of status reach the disk with the next write that matters, so
    that they cost none of their own. Its end is shown only once it is durable.
    """

    def __init__(self, job: Job, secrets: Sequence[Mapping[str, Any]] = ()) -> None:
        """Hold a job.

        Args:
            job: its newest version.
            secrets: of each operation, by parameter; a job that a predecessor took has none.
        """
        self.job = job
        self._secrets = secrets
        self.shown = job  # what others see
        self.cancel_wanted = asyncio.Event()
        if job.cancel_wanted:
            self.cancel_wanted.set()
        self.at_return = False  # a point of no return is being passed
        self.past_return = False  # the operation under way can't be undone any more
        self.doing: Doing | None = None
        self.calls: dict[object, Doing] = {}  # to nodes, under way
        self.turn: asyncio.Future[None] | None = None  # given when it has its place again
        self.task: asyncio.Task[None] | None = None
        self._watchers: set[asyncio.Future[None]] = set()

    @property
    def id(self) -> JobId:
        return self.job.id

    @property
    def owner(self) -> Owner:
        """Who holds its locks."""
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

    @property
    def is_undoing(self) -> bool:
        """Whether an operation has failed and what it did is being undone."""
        return any(op.failure is not None and not op.status.is_final for op in self.job.ops)

    @property
    def is_returning(self) -> bool:
        """Whether a point of no return is just being passed, and may be or not in a moment."""
        return self.at_return and not self.is_undoing and not self.job.status.is_final

    def too_late(self) -> str:
        """Say why a wish to cancel would change nothing any more; empty if it would."""
        if self.job.status.is_final:
            return f"Job {self.id} has ended already ({self.job.status})."
        if self.is_undoing:
            return f"Job {self.id} has failed, and what it did is being undone."
        if self.past_return and all(op.status.is_final for op in self.job.ops[:-1]):
            return f"Job {self.id} has passed its point of no return and runs to its end."
        return ""

    def op(self, index: int) -> OperationRecord:
        return self.job.ops[index]

    def secrets(self, index: int) -> Mapping[str, Any]:
        """Return what an operation was told and is not in its row."""
        return self._secrets[index] if self._secrets else {}

    def end_op(self, index: int, **fields: Any) -> None:
        """Change an operation for the last time, forgetting what was only needed to run it."""
        op = self.op(index)
        # One that was stored by an earlier version may have its secrets in its row.
        wiped = {key: value for key, value in op.input.items() if key not in op.secret}
        journal = () if fields["status"] is Status.SUCCESS else op.journal
        self.change_op(
            index,
            input=wiped,
            choice=None,
            plan=None,
            locks=(),
            hooks=None,
            journal=journal,
            **fields,
        )

    def strip_op(self, index: int) -> None:
        """Forget all that an operation said, and all of its input but what it was."""
        op = self.op(index)
        opcode = op.input.get("OP_ID", "")
        self.change_op(
            index,
            input={"OP_ID": opcode},
            choice=None,
            plan=None,
            hooks=None,
            result=None,
            log=(),
            journal=(),
            failure=op.failure and stripped(op.failure),
        )

    def log(
        self,
        index: int,
        now: float,
        message: str,
        kind: str = MESSAGE,
        value: dict[str, Any] | list[Any] | None = None,
    ) -> None:
        """Add a log entry; serials count through the whole job."""
        serial = 1 + max((op.log[-1].serial for op in self.job.ops if op.log), default=0)
        text = cut(message, ENTRY_CHARACTERS)
        entry = LogEntry(serial=serial, time=now, message=text, kind=kind, value=value)
        self.change_op(index, log=with_entry(self.op(index).log, entry))

    @contextmanager
    def calling(self, what: str, now: Timestamp) -> Iterator[None]:
        """Show that a node is being asked for something, for the length of a block."""
        key = object()
        self.calls[key] = Doing(what, now)
        try:
            yield
        finally:
            del self.calls[key]

    async def next_change(self) -> None:
        """Return when the job has changed after this call."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watchers.add(future)
        try:
            await future
        finally:
            self._watchers.discard(future)


def stripped(failure: Failure) -> Failure:
    """Return what is left of a failure that may be why its job cannot be stored."""
    return Failure(code=failure.code, message=cut(failure.message, STRIPPED_CHARACTERS))


async def ended(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks and return when they have ended, however they do."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # whoever wanted it may have been cancelled at the same moment
