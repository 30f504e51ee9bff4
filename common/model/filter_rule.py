"""A rule that jobs are held to before they begin: of which jobs, and what becomes of them."""

from enum import StrEnum
from typing import Any

from common.model.stored import Stored
from common.names import FilterId, JobId


class Action(StrEnum):
    """What becomes of a job that a rule applies to; names are Ganeti's."""

    ACCEPT = "ACCEPT"
    PAUSE = "PAUSE"  # it stays in the queue until the rule goes, or is replaced
    REJECT = "REJECT"  # it is cancelled
    CONTINUE = "CONTINUE"  # the rule applies to nothing; it is kept for another time
    RATE_LIMIT = "RATE_LIMIT"  # so many at a time


class FilterRule(Stored, kw_only=True):
    """One rule.

    Attributes:
        watermark: the newest job when the rule was made or replaced.
        priority: the smaller is asked first.
        predicates: all have to be true of a job: a name and a condition in the language of
            queries, in Ganeti's form.
        limit: how many jobs may run at a time, of a RATE_LIMIT; else 0.
        reason_trail: why there is the rule: source, text, nanoseconds since 1970.
    """

    uuid: FilterId
    watermark: JobId
    priority: int = 0
    predicates: tuple[tuple[str, Any], ...] = ()
    action: Action = Action.CONTINUE
    limit: int = 0
    reason_trail: tuple[tuple[str, str, int], ...] = ()

    @property
    def wire_action(self) -> str | list[Any]:
        """The action in Ganeti's form: ``"PAUSE"``, ``["RATE_LIMIT", 2]``."""
        limited = self.action is Action.RATE_LIMIT
        return [self.action.value, self.limit] if limited else self.action.value


def in_order(rule: FilterRule) -> tuple[int, JobId, FilterId]:
    """Sort rules as they are asked."""
    return rule.priority, rule.watermark, rule.uuid
