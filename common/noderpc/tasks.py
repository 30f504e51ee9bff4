"""Long work on a node: begun by one call, watched by others, outliving its caller."""

from abc import abstractmethod
from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta

from common.messages import Report
from common.names import Sentence, TaskId, Word
from common.rpc.declare import NodeService, rpc


class TaskState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class TaskStatus(Report):
    """``progress`` is a sentence and, where it can be told, a share from 0 to 1."""

    id: TaskId
    state: TaskState
    message: Sentence = ""
    share: Annotated[float, Meta(ge=0, le=1)] | None = None
    error_code: Word = ""  # with FAILED: of common.errors
    error_detail: dict[str, Any] = {}


class Tasks(NodeService, prefix="tasks"):
    """Watches and ends long work. Whoever begins a task chooses its id."""

    # Not fenced: it changes nothing, and a watcher of the old master must not hold up the new.
    @rpc(timeout=40, safe_to_repeat=True, fenced=False)
    @abstractmethod
    async def watch(self, *, task: TaskId, seen: str, wait_s: float) -> TaskStatus:
        """Return the status as soon as its message differs from ``seen`` or it has ended.

        Args:
            task: which.
            seen: the message known already.
            wait_s: answer after this long (at most 30) even without news.

        Raises:
            NotFound: no such task; noded was restarted, or it was forgotten.
        """

    @rpc(timeout=40, safe_to_repeat=True)
    @abstractmethod
    async def cancel(self, *, task: TaskId) -> None:
        """End a task, and return when it has ended; harmless when it is over or unknown."""
