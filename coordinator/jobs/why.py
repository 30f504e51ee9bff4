"""What a job waits for, in sentences: its turn, another job, a lock and whose it is, a node."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from common.errors import GntError
from common.model.filter_rule import Action
from common.model.job import Job, Timestamp
from common.names import JobId
from coordinator.jobs.limits import Limit, ReasonLimit
from coordinator.jobs.rules import in_words as rule_in_words
from coordinator.jobs.running import RunningJob
from coordinator.locks.names import LockName, Owner
from coordinator.queries.lock_names import in_words
from coordinator.state.config import Config
from coordinator.state.store import Store

NAMED = 3  # jobs in a sentence

Obstacle = tuple[LockName, list[Owner], list[Owner]]  # held by, promised next to


class Reason(NamedTuple):
    """Completes "job 12 waits for …"; ``since`` is when that began, if it is known."""

    what: str
    since: Timestamp | None = None


class Standing(NamedTuple):
    """How far a job has come in the queue."""

    running: RunningJob
    dependencies: Sequence[JobId]  # that have not ended
    before: int | None  # how many go before it; None: it is not in the line
    places: int
    limit: Limit | None  # that holds it
    unstored: str  # why nothing can be stored, if that is so
    obstacles: Sequence[Obstacle]


def reasons(
    standing: Standing, find: Callable[[JobId], Job | None], config: Config
) -> list[Reason]:
    """Say what keeps a job that has not ended; the first is what has to happen first."""
    running = standing.running
    since = running.doing.since if running.doing else running.job.received
    if standing.unstored:
        return [Reason(f"a majority that stores what it does. {standing.unstored}", since)]
    if standing.dependencies:
        others = [(number, find(number)) for number in standing.dependencies[:NAMED]]
        return [Reason(f"the end of {_name(*other)}", since) for other in others]
    if standing.limit is not None:
        return [Reason(_limit(standing.limit), since)]
    if standing.before is not None:
        what = f"one of the {standing.places} places to run"
        if running.turn is not None:
            return [Reason(f"{what} (it has its locks already)", since)]
        return [Reason(f"{what} ({_jobs(standing.before)} before it)", since)]
    if standing.obstacles:
        return [Reason(_lock(each, find, config), since) for each in standing.obstacles]
    calls = [Reason(*call) for call in running.calls.values()]
    step = (
        [Reason(f"the end of {running.doing.what}", running.doing.since)] if running.doing else []
    )
    return [*step, *calls]


def why_unstored(store: Store) -> str:
    """Say why nothing can be stored; nothing if it can."""
    try:
        store.check_writable()
    except GntError as error:
        return error.message
    return ""


def _limit(limit: Limit) -> str:
    if isinstance(limit, ReasonLimit):
        return f"one of the {limit.limit} places of jobs that have the reason “{limit.reason}”"
    if limit.action is Action.RATE_LIMIT:
        return f"one of the {limit.limit} places that {rule_in_words(limit)} leaves"
    return f"{rule_in_words(limit)} to be deleted or replaced"


def _lock(obstacle: Obstacle, find: Callable[[JobId], Job | None], config: Config) -> str:
    lock, holders, before = obstacle
    parts = [in_words(lock, config)]
    if holders:
        parts.append(f"held by {', '.join(_owners(holders, find))}")
    if before:
        parts.append(f"promised to {', '.join(_owners(before, find))} next")
    return ", ".join(parts)


def _owners(owners: Sequence[Owner], find: Callable[[JobId], Job | None]) -> Iterator[str]:
    for owner in owners[:NAMED]:
        word, _, number = owner.partition(" ")
        job = find(JobId(int(number))) if word == "job" and number.isdecimal() else None
        yield _name(job.id, job) if job else owner
    if len(owners) > NAMED:
        yield f"and {len(owners) - NAMED} more"


def _name(number: JobId, job: Job | None) -> str:
    """Name a job, with what it is at: ``job 9 (INSTANCE_MIGRATE(web1), running)``."""
    if job is None:
        return f"job {number}"
    op = next((op for op in job.ops if not op.status.is_final), job.ops[-1])
    return f"job {number} ({op.summary}, {op.status})"


def _jobs(count: int) -> str:
    return {0: "no job goes", 1: "1 job goes"}.get(count, f"{count} jobs go")
