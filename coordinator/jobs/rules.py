"""Filter rules: made, replaced and deleted by clients at once, without a job, and heeded at once.

No job is needed for it, because a rule may hold all of them.
"""

from collections.abc import Callable
from typing import Any

from common.errors import Cancelled, GntError, InvalidRequest, NotFound, Unreachable
from common.messages import Order, from_builtins, to_json
from common.model.filter_rule import Action, FilterRule
from common.names import LARGEST_COUNT, FilterId, JobId, is_uuid
from common.tasks import Background
from coordinator.jobs.filtering import predicates_of
from coordinator.jobs.held import Held
from coordinator.jobs.known import KnownJobs
from coordinator.jobs.places import Places
from coordinator.jobs.running import RunningJob
from coordinator.jobs.storing import stored
from coordinator.state.kinds import FILTER
from coordinator.state.rows import Delete, Put, Update
from coordinator.state.store import Store

MOST_PREDICATES = 50  # of one rule: each is asked about each job


class RuleWish(Order):
    """A rule as clients send it."""

    priority: int = 0
    predicates: tuple[tuple[str, Any], ...] = ()
    action: str | tuple[str, int] = Action.CONTINUE.value
    reason: tuple[tuple[str, str, int], ...] = ()


class Rules:
    """The rules there are, and what comes of them for jobs that have not begun.

    Args:
        store: where they are.
        background: owns what is still being stored when nobody waits for it any more.
        jobs: those there are.
        held: which of them are held.
        places: where jobs stand in line that are not.
        newest: gives the newest job.
        start: begins a job, or ends it by what refuses it.
    """

    def __init__(
        self,
        store: Store,
        background: Background,
        jobs: KnownJobs,
        held: Held,
        places: Places,
        newest: Callable[[], JobId],
        start: Callable[[RunningJob, GntError], None],
    ) -> None:
        self._store, self._background = store, background
        self._jobs, self._held, self._places = jobs, held, places
        self._newest, self._start = newest, start

    def heed(self) -> None:
        """Hold all jobs that have not begun to the rules as they are now."""
        live = self._jobs.live
        begun = [each.job for each in live.values() if each.task is not None]
        rules = self._store.state.config.table(FILTER).values()
        for number in self._held.use(rules, begun):
            self._places.stand_in_line(live[number])
        for waiting in [each for each in live.values() if each.task is None]:
            self.reject(waiting)
        self._places.fill()

    def reject(self, running: RunningJob) -> bool:
        """End a job that has not begun if a rule rejects it; tell whether one does."""
        rule = self._held.applying(running.job)
        if rule is None or rule.action is not Action.REJECT:
            return False
        self._places.take(running)
        why = f"Job {running.id} was rejected by {in_words(rule)}."
        self._start(running, Cancelled(why, filter=rule.uuid))
        return True

    async def replace(self, uuid: Any, wish: Any) -> FilterId:
        """Make a rule, in place of the one with this UUID if there is one.

        Raises:
            InvalidRequest: it makes no sense.
            Conflict: the state can't be changed now.
            Unreachable: it is not known whether it was stored; it still may be.
        """
        rule = read_rule(uuid, wish, self._newest())
        await self._change(Put(rule))
        return rule.uuid

    async def delete(self, uuid: Any) -> None:
        """Delete a rule.

        Raises:
            NotFound: there is none.
            Conflict, Unreachable: as ``replace``.
        """
        rule = self._store.tip.config.find(FILTER, str(uuid))
        if rule is None:
            raise NotFound(f"There is no filter rule {uuid}; “gnt-filter list” tells which are.")
        await self._change(Delete(rule))

    async def _change(self, update: Update) -> None:
        self._store.check_writable()
        await stored(self._commit(update), self._background, _unknown)

    async def _commit(self, update: Update) -> None:
        await self._store.commit([update])
        self.heed()


def read_rule(uuid: Any, wish: Any, watermark: JobId) -> FilterRule:
    """Read a rule as clients send it.

    Raises:
        InvalidRequest: says what makes no sense.
    """
    if not isinstance(uuid, str) or not is_uuid(uuid):
        raise InvalidRequest(f"“{uuid}” is no UUID, by which filter rules are called.")
    told = from_builtins(wish, RuleWish, what="the filter rule")
    if not 0 <= told.priority <= LARGEST_COUNT:
        raise InvalidRequest(f"The priority of a filter rule is 0 or more, not {told.priority}.")
    if len(told.predicates) > MOST_PREDICATES:
        raise InvalidRequest(f"A filter rule may have {MOST_PREDICATES} predicates, not more.")
    action, limit = _read_action(told.action)
    rule = FilterRule(
        uuid=FilterId(uuid),
        watermark=watermark,
        priority=told.priority,
        predicates=told.predicates,
        action=action,
        limit=limit,
        reason_trail=told.reason,
    )
    predicates_of(rule)
    return rule


def in_words(rule: FilterRule) -> str:
    """Name a rule, with the first reason that was given for it: programs add empty ones."""
    why = next((text for _, text, _ in rule.reason_trail if text), "")
    return f"the filter rule {rule.uuid}" + (f" (“{why}”)" if why else "")


def _read_action(told: str | tuple[str, int]) -> tuple[Action, int]:
    match told:
        case (Action.RATE_LIMIT, limit) if 0 < limit <= LARGEST_COUNT:
            return Action.RATE_LIMIT, limit
        case Action.ACCEPT | Action.PAUSE | Action.REJECT | Action.CONTINUE:
            return Action(told), 0
        case _:
            shown = told if isinstance(told, str) else to_json(told).decode()
            raise InvalidRequest(
                f"“{shown}” is no action of a filter rule; there are ACCEPT, PAUSE, REJECT, "
                'CONTINUE and ["RATE_LIMIT", N] with N from 1.'
            )


def _unknown() -> Unreachable:
    return Unreachable(
        "This could not be stored on a majority of the master candidates yet; it still may be, and "
        "is heeded then. “gnt-filter list” tells."
    )
