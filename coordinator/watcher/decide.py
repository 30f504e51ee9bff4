"""Which of the instances that should run and do not are to be started now.

There is no memory but the jobs: how often an instance was started in vain is counted in those
that the watcher submitted before. So it may be killed anywhere, and another node's watcher goes
on where this one's was.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

# How long after the end of the first, second, ... attempt in a row the next one is due. After the
# last of them it begins anew.
PAUSES_S = (60.0, 240.0, 900.0, 3600.0, 10_800.0)
ATTEMPTS = len(PAUSES_S)
# An instance that was seen down only so much later than the next attempt was due had run.
HELD_S = 600.0
MEMORY_S = sum(PAUSES_S) + ATTEMPTS * HELD_S  # older attempts change nothing


class Attempt(NamedTuple):
    """A job of the watcher that has ended; times in seconds since 1970."""

    instance: str
    received: float
    ended: float


class Start(NamedTuple):
    """An order to start ``instance``; ``number`` of ``ATTEMPTS`` in a row."""

    instance: str
    number: int


class Leave(NamedTuple):
    """An instance that is down and stays so for now, and why: a sentence."""

    instance: str
    why: str


def decide(
    down: Sequence[str], attempts: Iterable[Attempt], busy: frozenset[str], now: float
) -> tuple[list[Start], list[Leave]]:
    """Decide what to do about the instances that are down.

    Args:
        down: names of those that should run and do not, though their node answers.
        attempts: to start any of them, in any order.
        busy: names of those that a job works on, or is going to.
        now: seconds since 1970.
    """
    past: dict[str, list[Attempt]] = {name: [] for name in down}
    for attempt in attempts:
        if attempt.instance in past:
            past[attempt.instance].append(attempt)
    start: list[Start] = []
    leave: list[Leave] = []
    for name, mine in past.items():
        number, due = next_attempt(mine, now)
        if name in busy:
            leave.append(Leave(name, f"Instance {name} is down; a job has to do with it already."))
        elif due > now:
            leave.append(Leave(name, _not_yet(name, number, due - now)))
        else:
            start.append(Start(name, number))
    return start, leave


def next_attempt(attempts: Iterable[Attempt], now: float) -> tuple[int, float]:
    """Return which attempt in a row the next one is, from 1, and when it is due.

    Clocks are put back: what is in the future then tells nothing.
    """
    in_a_row, due = 0, 0.0
    for attempt in sorted(attempts, key=lambda attempt: attempt.received):
        if attempt.received > now:
            break
        in_a_row = 1 + (0 if _begins_anew(in_a_row, due, attempt.received) else in_a_row)
        ended = attempt.ended if attempt.ended <= now else attempt.received
        due = ended + PAUSES_S[min(in_a_row, ATTEMPTS) - 1]
    return 1 + (0 if _begins_anew(in_a_row, due, now) else in_a_row), due


def _begins_anew(in_a_row: int, due: float, then: float) -> bool:
    """Tell whether an attempt at ``then``, after some in a row, is the first of a new row."""
    return then >= due + (HELD_S if in_a_row < ATTEMPTS else 0.0)


def _not_yet(name: str, number: int, wait_s: float) -> str:
    if number > ATTEMPTS:
        return (
            f"Instance {name} is down and was started {ATTEMPTS} times in vain; it is tried again "
            f"in {spoken(wait_s)}. “gnt-instance startup {name}” starts it now."
        )
    return f"Instance {name} is down; attempt {number} to start it is due in {spoken(wait_s)}."


def spoken(seconds: float) -> str:
    """Return a span of time for people to read, rounded up: ``4 hours``, ``13 minutes``."""
    minutes = -(-int(seconds) // 60)
    if minutes < 2:
        return "a minute"
    return f"{minutes} minutes" if minutes < 120 else f"{-(-minutes // 60)} hours"
