"""The fields of a job; names, titles, kinds and texts are Ganeti's.

``opfailure`` and ``waits`` are ours: Ganeti's ``opresult`` tells less of what went wrong, and its
``status`` less of what is missing.
"""

from collections.abc import Callable, Sequence
from typing import Any

from common.errors import GntError, InvalidRequest
from common.luxi.failures import to_ganeti
from common.model.job import LISTED, Job, LogEntry, OperationRecord, Timestamp
from common.names import JobId
from coordinator.queries.field import Field, Kind, Missing, table


class JobRow:
    """A job, and who can tell what a job waits for."""

    def __init__(self, job: Job, waits: Callable[[JobId], str] = lambda _: "") -> None:
        self.job, self._waits = job, waits

    @property
    def waits(self) -> str:
        return "" if self.job.status.is_final else self._waits(self.job.id)


def wire_time(time: Timestamp | None) -> Any:
    """Return a time as Ganeti writes it: whole seconds and microseconds."""
    if time is None:
        return None
    microseconds = round(time * 1_000_000)
    return [microseconds // 1_000_000, microseconds % 1_000_000]


def wire_log(entry: LogEntry) -> list[Any]:
    """Return a log entry as Ganeti writes it."""
    value = entry.value.get(LISTED, entry.value) if isinstance(entry.value, dict) else entry.value
    message = entry.message if value is None else value
    return [entry.serial, wire_time(entry.time), entry.kind, message]


def job_values(job: Job, names: Sequence[str]) -> list[Any]:
    """Return plain values of one job, None where there is none, as WaitForJobChange does.

    Raises:
        InvalidRequest: no such field.
    """
    unknown = [name for name in names if name not in JOB_FIELDS]
    if unknown:
        raise InvalidRequest(f"There is no field {', '.join(map(str, unknown))} of jobs.")
    values = [JOB_FIELDS[name].get(JobRow(job)) for name in names]
    return [None if isinstance(value, Missing) else value for value in values]


def _shown(op: OperationRecord) -> dict[str, Any]:
    """Return an operation's input; that there were secrets is all that is known of them."""
    return {"depends": None} | op.input | dict.fromkeys(op.secret, "<secret>")


def _result(op: OperationRecord) -> Any:
    if op.failure is None:
        return op.result
    failure = op.failure
    return to_ganeti(GntError.from_code(failure.code, failure.message, failure.detail))


def _failure(op: OperationRecord) -> Any:
    failure = op.failure
    if failure is None:
        return None
    return {"code": failure.code, "message": failure.message, "detail": failure.detail}


def _priority(job: Job) -> int:
    """Return that of the operation it has come to, or of the last one."""
    waiting = (op.priority for op in job.ops if not op.status.is_final)
    return next(waiting, job.ops[-1].priority if job.ops else 0)


def _time(time: Timestamp | None) -> Any:
    return Missing.UNAVAILABLE if time is None else wire_time(time)


def _each(of: Callable[[OperationRecord], Any]) -> Callable[[JobRow], Any]:
    return lambda row: [of(op) for op in row.job.ops]


# fmt: off
_FIELDS: tuple[Field[JobRow], ...] = (
    Field("id", "ID", Kind.NUMBER, "Job ID", lambda row: row.job.id),
    Field("archived", "Archived", Kind.BOOL, "Whether job is archived",
          lambda row: row.job.archived),
    Field("end_ts", "End", Kind.OTHER,
          "Timestamp of job end (tuple containing seconds and microseconds)",
          lambda row: _time(row.job.ended)),
    Field("opend", "OpCode_end", Kind.OTHER, "List of opcode execution end timestamps",
          _each(lambda op: wire_time(op.ended))),
    Field("opexec", "OpCode_exec", Kind.OTHER,
          "List of opcode execution start timestamps (after acquiring locks)",
          _each(lambda op: wire_time(op.executed))),
    Field("opfailure", "OpCode_failure", Kind.OTHER,
          "List of opcode failures (code, message and detail), null where there is none",
          _each(_failure)),
    Field("oplog", "OpCode_log", Kind.OTHER, "List of opcode output logs",
          _each(lambda op: [wire_log(entry) for entry in op.log])),
    Field("oppriority", "OpCode_prio", Kind.OTHER, "List of opcode priorities",
          _each(lambda op: op.priority)),
    Field("opresult", "OpCode_result", Kind.OTHER, "List of opcodes results", _each(_result)),
    Field("ops", "OpCodes", Kind.OTHER, "List of all opcodes", _each(_shown)),
    Field("opstart", "OpCode_start", Kind.OTHER,
          "List of opcode start timestamps (before acquiring locks)",
          _each(lambda op: wire_time(op.started))),
    Field("opstatus", "OpCode_status", Kind.OTHER, "List of opcodes status",
          _each(lambda op: op.status)),
    Field("priority", "Priority", Kind.NUMBER, "Current job priority (19 to -20)",
          lambda row: _priority(row.job)),
    Field("received_ts", "Received", Kind.OTHER,
          "Timestamp of when job was received (tuple containing seconds and microseconds)",
          lambda row: _time(row.job.received)),
    Field("start_ts", "Start", Kind.OTHER,
          "Timestamp of job start (tuple containing seconds and microseconds)",
          lambda row: _time(row.job.started)),
    Field("status", "Status", Kind.TEXT, "Job status", lambda row: row.job.status),
    Field("summary", "Summary", Kind.OTHER, "List of per-opcode summaries",
          _each(lambda op: op.summary)),
    Field("waits", "Waits_for", Kind.TEXT, "What a job that has not ended waits for",
          lambda row: row.waits),
)
# fmt: on

JOB_FIELDS = table(_FIELDS)
