"""How many jobs of a kind may run at a time: a filter rule says so, or the jobs themselves do.

A job whose reason trail has ``rate-limit:3:backups`` runs beside two others that have the same, and
waits for the rest of them. Other numbers are other limits, whatever they are called.

Source: Ganeti's design document on operations with limits ("Ad-Hoc Rate Limiting").
"""

from typing import NamedTuple

from common.model.filter_rule import Action, FilterRule
from common.model.job import Job
from coordinator.jobs.filtering import reasons_of

_PREFIX = "rate-limit:"
_MOST_DIGITS = 9


class ReasonLimit(NamedTuple):
    """A limit that jobs bring along: of all that have this reason, so many may run."""

    reason: str
    limit: int


Limit = FilterRule | ReasonLimit
"""What has a ``limit``; that of a rule without one is 0, so that it lets nobody begin."""


def limits_of(job: Job, rule: FilterRule | None) -> tuple[Limit, ...]:
    """Return what a job has to fit into before it may begin.

    Args:
        job: whose reasons count.
        rule: what decides about it, if anything does.
    """
    told = dict.fromkeys(text for _, text, _ in reasons_of(job))
    by_reason = [limit for text in told if (limit := _read(text)) is not None]
    return (*([] if rule is None or rule.action is Action.ACCEPT else [rule]), *by_reason)


def key_of(limit: Limit) -> str:
    """Return what tells a limit from all others."""
    return limit.uuid if isinstance(limit, FilterRule) else limit.reason


def _read(reason: str) -> ReasonLimit | None:
    """Read a reason that limits; any other text does not."""
    if not reason.startswith(_PREFIX):
        return None
    number = reason.removeprefix(_PREFIX).partition(":")[0]
    is_number = number.isascii() and number.isdecimal() and len(number) <= _MOST_DIGITS
    if not is_number or int(number) == 0:
        return None
    return ReasonLimit(reason, int(number))
