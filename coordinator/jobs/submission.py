"""Read what a client submits: operations in wire form become a job's row, without its secrets."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from common.errors import Conflict, InvalidRequest
from common.messages import Order, from_builtins
from common.model.job import Dependency, Job, OperationRecord, Status
from common.names import LARGEST_COUNT, MOST_DEBUG, Few, JobId
from coordinator.jobs.bounds import check_job_size
from coordinator.operations.base import read_operation
from coordinator.state.versions import to_values

PRIORITIES = range(-20, 20)
AT_SUBMISSION = (-10, 0, 10)  # Ganeti's; any other is for who looks after the queue
_ENDS = tuple(status for status in Status if status.is_final)


class Batch(NamedTuple):
    """The operations of one job in wire form, and what was chosen for each: by no client, ever."""

    operations: Sequence[Mapping[str, Any]]
    choices: Sequence[Any] = ()


class Submitted(NamedTuple):
    """A job as it is stored, and for each of its operations the secrets, which never are."""

    job: Job
    secrets: tuple[Mapping[str, Any], ...]


class _Common(Order):
    """Attributes that any operation may carry besides its parameters."""

    dry_run: bool = False
    debug_level: Few = 0
    priority: int = 0
    depends: tuple[tuple[int, tuple[str, ...]], ...] | None = None
    comment: str | None = None
    reason: tuple[tuple[str, str, int], ...] = ()  # source, text, nanoseconds since 1970


def read_job(
    batch: Batch,
    number: JobId,
    *,
    now: float,
    before: Sequence[JobId],
    find: Callable[[JobId], Job | None],
) -> Submitted:
    """Build a job from its operations.

    Args:
        batch: the operations.
        number: of the new job.
        now: seconds since 1970.
        before: jobs of the same submission, to which negative dependencies count back.
        find: gives the job of a number, archived or not.

    Raises:
        InvalidRequest: no operation, an unknown one, something that does not fit, or too much.
        Conflict: it depends on an archived job that did not end as required.
    """
    if not batch.operations:
        raise InvalidRequest("A job has at least one operation.")
    records, secrets, depends = [], [], []
    for wire, choice in zip_longest(batch.operations, batch.choices):
        operation = read_operation(dict(wire))
        extra = {
            name: wire[name] for name in _Common.__struct_fields__ if wire.get(name) is not None
        }
        common = from_builtins(extra, _Common, what=f"the attributes of {operation.opcode}")
        _check_submitted(common.priority)
        found = [_dependency(*pair, before, find) for pair in common.depends or ()]
        left = [dependency for dependency in found if dependency is not None]
        depends += left
        kept: dict[str, Any] = {"dry_run": True} if common.dry_run else {}
        if common.debug_level:
            kept["debug_level"] = min(common.debug_level, MOST_DEBUG)  # Ganeti's has no end
        if common.reason:
            kept["reason"] = [list(each) for each in common.reason]
        if common.comment:
            kept["comment"] = common.comment
        if left:
            kept["depends"] = [[each.job, list(each.statuses)] for each in left]
        given = operation.to_input()
        parameters = operation.parameters().items()
        secret = tuple(name for name, p in parameters if p.secret and given[name])
        secrets.append({name: given.pop(name) for name in secret})
        records.append(
            OperationRecord(
                input=given | kept,
                secret=secret,
                summary=operation.summary(),
                priority=common.priority,
                version=operation.version,
                choice=to_values(choice, operation.choice_type),
            )
        )
    job = Job(id=number, ops=tuple(records), received=now, depends=tuple(depends))
    check_job_size(job)
    return Submitted(job, tuple(secrets))


def dependencies_of(batch: Sequence[Mapping[str, Any]]) -> Iterator[JobId]:
    """Yield the numbers that a submitted job names as those it depends on; misfits are skipped."""
    for wire in batch:
        pairs = wire.get("depends")
        for pair in pairs if isinstance(pairs, list | tuple) else ():
            match pair:
                case [int() as number, *_] if 0 <= number <= LARGEST_COUNT:
                    yield JobId(number)


def check_priority(priority: int) -> None:
    """Refuse a number that is no priority.

    Raises:
        InvalidRequest: says what one is.
    """
    if priority not in PRIORITIES:
        raise InvalidRequest(f"A priority is from -20 (first) to 19 (last), not {priority}.")


def _check_submitted(priority: int) -> None:
    if priority not in AT_SUBMISSION:
        raise InvalidRequest(
            f"A job is submitted with priority -10 (high), 0 or 10 (low), not {priority}; "
            "“gnt-job change-priority” gives it any other."
        )


def _dependency(
    ref: int,
    statuses: tuple[str, ...],
    before: Sequence[JobId],
    find: Callable[[JobId], Job | None],
) -> Dependency | None:
    """Resolve a job number, or a negative one that counts back in the same submission.

    Nothing is left of a dependency on an archived job: it is met, or never will be.
    """
    number = JobId(ref)
    if strange := [status for status in statuses if status not in _ENDS]:
        raise InvalidRequest(
            f"“{strange[0]}” is nothing that a job ends as; one may depend on another job's "
            f"{', '.join(_ENDS)}."
        )
    wanted = tuple(map(Status, statuses)) or (Status.SUCCESS,)
    if ref < 0:
        if -ref > len(before):
            raise InvalidRequest(f"The dependency {ref} points before the first job sent.")
        number = before[ref]
    elif (job := find(number)) is None:
        raise InvalidRequest(f"The job depends on job {ref}, which does not exist.")
    elif job.archived and job.status in wanted:
        return None
    elif job.archived:
        raise Conflict(f"The job depends on job {ref}, which ended otherwise: {job.status}.")
    return Dependency(job=number, statuses=wanted)
