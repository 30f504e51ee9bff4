"""Read what a client submits: operations in wire form become a job's row."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from common.errors import InvalidRequest
from common.messages import Order, from_builtins
from common.model.job import Dependency, Job, OperationRecord, Status
from common.names import JobId
from coordinator.operations.base import read_operation

PRIORITIES = range(-20, 20)


class _Common(Order):
    """Attributes that any operation may carry besides its parameters."""

    dry_run: bool = False
    debug_level: int = 0
    priority: int = 0
    depends: tuple[tuple[int, tuple[str, ...]], ...] | None = None
    comment: str | None = None
    reason: tuple[tuple[str, str, int], ...] = ()  # source, text, nanoseconds since 1970


def read_job(
    batch: Sequence[Mapping[str, Any]],
    number: JobId,
    *,
    now: float,
    before: Sequence[JobId],
    exists: Callable[[JobId], bool],
) -> Job:
    """Build a job from its operations.

    Args:
        batch: the operations.
        number: of the new job.
        now: seconds since 1970.
        before: jobs of the same submission, to which negative dependencies count back.
        exists: whether there is a job of a number.

    Raises:
        InvalidRequest: no operation, an unknown one, or something that does not fit.
    """
    if not batch:
        raise InvalidRequest("A job has at least one operation.")
    records, depends = [], []
    for wire in batch:
        operation = read_operation(dict(wire))
        extra = {
            name: wire[name] for name in _Common.__struct_fields__ if wire.get(name) is not None
        }
        common = from_builtins(extra, _Common, what=f"the attributes of {operation.opcode}")
        check_priority(common.priority)
        depends += [_dependency(*pair, before, exists) for pair in common.depends or ()]
        kept: dict[str, Any] = {"dry_run": True} if common.dry_run else {}
        if common.reason:
            kept["reason"] = [list(each) for each in common.reason]
        records.append(
            OperationRecord(
                input=operation.to_input() | kept,
                secret=tuple(n for n, p in operation.parameters().items() if p.secret),
                summary=operation.summary(),
                priority=common.priority,
            )
        )
    return Job(id=number, ops=tuple(records), received=now, depends=tuple(depends))


def check_priority(priority: int) -> None:
    """Refuse a number that is no priority.

    Raises:
        InvalidRequest: says what one is.
    """
    if priority not in PRIORITIES:
        raise InvalidRequest(f"A priority is from -20 (first) to 19 (last), not {priority}.")


def _dependency(
    ref: int, statuses: tuple[str, ...], before: Sequence[JobId], exists: Callable[[JobId], bool]
) -> Dependency:
    """Resolve a job number, or a negative one that counts back in the same submission."""
    number = JobId(ref)
    if ref < 0:
        if -ref > len(before):
            raise InvalidRequest(f"The dependency {ref} points before the first job sent.")
        number = before[ref]
    elif not exists(number):
        raise InvalidRequest(f"The job depends on job {ref}, which does not exist.")
    wanted = tuple(Status(s) for s in statuses if s in tuple(Status)) or (Status.SUCCESS,)
    return Dependency(job=number, statuses=wanted)
