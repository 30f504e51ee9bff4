"""Jobs: what was asked for, how far it has come, and what it said on the way."""

from enum import StrEnum
from typing import Any

from common.model.stored import Part, Stored
from common.names import JobId, NodeId

Timestamp = float  # seconds since 1970, UTC


class Status(StrEnum):
    """Of a job and of each of its operations; names are Ganeti's."""

    QUEUED = "queued"
    WAITING = "waiting"  # for locks
    CANCELING = "canceling"  # an operator wished it, and it will end so; what it did is undone
    RUNNING = "running"
    CANCELED = "canceled"
    SUCCESS = "success"
    ERROR = "error"

    @property
    def is_final(self) -> bool:
        return self in (Status.CANCELED, Status.SUCCESS, Status.ERROR)


LISTED = "list"  # where a list is in the value of an entry: older coordinators read no other


class LogEntry(Part, kw_only=True, omit_defaults=True):
    serial: int  # counts within the job, from 1
    time: Timestamp
    message: str
    kind: str = "message"
    value: dict[str, Any] | list[Any] | None = None  # what programs are told instead


class Failure(Part, kw_only=True):
    """Why an operation failed; ``code`` is of ``common.errors``."""

    code: str
    message: str
    detail: dict[str, Any] = {}


class Entry(Part, kw_only=True):
    """One line of an operation's journal: what happened to which step."""

    event: str  # started, finished, unedited, undone
    step: str  # its title, unique within the recipe


class HooksDue(Part, kw_only=True):
    """Scripts that are to be run when an operation has ended, and what they are told.

    Attributes:
        nodes: by UUID the directories with anything to run.
        environment: what scripts were told before the operation, and are told once more.
        subject: UUID of what the operation is about; empty: the cluster.
    """

    nodes: dict[NodeId, tuple[str, ...]]
    environment: dict[str, str]
    subject: str = ""


class OperationRecord(Part, kw_only=True, omit_defaults=True):
    """One operation of a job, with all that a successor needs to go on with it.

    That is ``choice`` at first, and from its plan on ``plan``, ``locks`` and ``journal``.

    There are many jobs, so their rows leave out what is as usual.
    """

    input: dict[str, Any]  # OP_ID and the parameters, without the secret ones
    secret: tuple[str, ...] = ()  # parameters that were told to the coordinator's memory alone
    summary: str  # "INSTANCE_CREATE(web1)"
    status: Status = Status.QUEUED
    result: Any = None
    failure: Failure | None = None
    log: tuple[LogEntry, ...] = ()
    priority: int = 0
    started: Timestamp | None = None  # began to wait for locks
    executed: Timestamp | None = None  # had the locks
    ended: Timestamp | None = None
    locks: tuple[tuple[str, str], ...] = ()  # (lock, mode), held while running; dropped then
    version: int = 1  # of what ``choice``, ``plan`` and steps mean: see ``Operation.version``
    choice: Any = None  # what was left open, settled; dropped when there is a plan
    plan: Any = None  # dropped when it has ended
    hooks: HooksDue | None = None  # dropped when they have been run
    journal: tuple[Entry, ...] = ()  # dropped after a success: the log tells the same


class Dependency(Part, kw_only=True):
    job: JobId
    statuses: tuple[Status, ...] = (Status.SUCCESS,)


class Job(Stored, kw_only=True, omit_defaults=True):
    id: JobId
    ops: tuple[OperationRecord, ...]
    received: Timestamp
    started: Timestamp | None = None
    ended: Timestamp | None = None
    depends: tuple[Dependency, ...] = ()
    archived: bool = False
    cancel_wanted: bool = False  # an operator was told that it ends; whoever is master heeds it

    @property
    def status(self) -> Status:
        """What the operations add up to."""
        statuses = [op.status for op in self.ops]
        if Status.ERROR in statuses:
            return Status.ERROR
        return next((s for s in statuses if s is not Status.SUCCESS), Status.SUCCESS)


class ArchivedJob(Stored, kw_only=True):
    """A job that has ended and was put out of sight: kept beside the state, never loaded with it.

    Deleting one from the archive deletes all that are older, too.
    """

    job: Job
