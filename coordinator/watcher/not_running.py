"""Instances that should run and do not: they are started, a number of times."""

from collections.abc import Iterable
from typing import Any

from coordinator.watcher.conversation import (
    ENDED,
    LARGEST_ORDER,
    PRIORITY,
    SOURCE,
    Round,
    Told,
    Weight,
    asked,
    ordered,
    unfinished_or_since,
)
from coordinator.watcher.decide import ATTEMPTS, MEMORY_S, PAUSES_S, Attempt, Start, decide, spoken

# A node that is offline or does not answer makes another status than ERROR_down: whether its
# guests run is not known, so they are left alone.
LACKS_SPACE = "paused, as what it wrote found no room"
DOWN = [
    "&",
    ["==", "admin_state", "up"],
    ["|", ["==", "status", "ERROR_down"], ["==", "guest_state", LACKS_SPACE]],
]


def restart(now: float, *, drained: bool) -> Round:
    """Have instances started that should run and do not."""
    down = [name for (name,) in (yield from asked("instance", ["name"], DOWN))]
    if not down:
        return []
    fields, recent = ["received_ts", "end_ts", "status", "ops"], unfinished_or_since(now - MEMORY_S)
    jobs = yield from asked("job", fields, recent)
    locks = yield from asked("lock", ["name", "mode", "pending"], None)
    busy = frozenset({*_worked_on(jobs), *_locked(locks)})
    start, leave = decide(down, _attempts(jobs), busy, now)
    told = [Told(Weight.INFO, each.why) for each in leave]
    if start and drained:
        names = ", ".join(each.instance for each in start)
        why = f"The job queue is drained, so these instances stay down: {names}."
        return [*told, Told(Weight.INFO, why)]  # as the operator wants it
    if start:
        due = start[:LARGEST_ORDER]
        answers = yield from ordered(_job(each, now) for each in due)
        told += [_told_of(each, *answer) for each, answer in zip(due, answers, strict=True)]
    return told


def _job(start: Start, now: float) -> dict[str, Any]:
    """Return the one operation of the job that starts an instance."""
    why = f"should run and does not; attempt {start.number} of {ATTEMPTS}"
    return {
        "OP_ID": "OP_INSTANCE_STARTUP",
        "instance_name": start.instance,
        "only_if_up": True,  # an operator may stop it for good before the job's turn has come
        "priority": PRIORITY,
        "reason": [[SOURCE, why, int(now * 1_000_000_000)]],
    }


def _told_of(start: Start, accepted: bool, answer: Any) -> Told:
    name, number = start.instance, start.number
    if not accepted:
        why = f"Instance {name} should run and does not; it cannot be started: {answer}"
        return Told(Weight.WARNING, why)
    text = f"Instance {name} should run and does not; job {answer} starts it"
    if number == ATTEMPTS:
        pause = spoken(PAUSES_S[-1])
        text += f", the last attempt of {ATTEMPTS}: if it does not stay up, it is left for {pause}."
    else:
        text += f", attempt {number} of {ATTEMPTS}."
    return Told(Weight.WARNING, text)


def _worked_on(jobs: Iterable[list[Any]]) -> Iterable[str]:
    """Yield the names of the instances of jobs that have not ended."""
    for _, _, status, ops in jobs:
        if status not in ENDED:
            yield from (op["instance_name"] for op in ops if "instance_name" in op)


def _locked(locks: Iterable[list[Any]]) -> Iterable[str]:
    """Yield the names of the instances that a job is changing, or waits for to change."""
    for name, mode, pending in locks:
        level, _, instance = name.partition("/")
        if level == "instance" and (mode == "exclusive" or pending):
            yield instance


def _attempts(jobs: Iterable[list[Any]]) -> list[Attempt]:
    """Return what the watcher tried since somebody else last did something to the instance."""
    tried: list[Attempt] = []
    touched: dict[str, float] = {}
    for received, ended, status, ops in jobs:
        if status not in ENDED or ended is None:
            continue
        for op in (op for op in ops if "instance_name" in op):
            name = op["instance_name"]
            if any(source == SOURCE for source, _, _ in op.get("reason", ())):
                tried.append(Attempt(name, _seconds(received), _seconds(ended)))
            elif status == "success":
                touched[name] = max(touched.get(name, 0.0), _seconds(ended))
    return [each for each in tried if each.received >= touched.get(each.instance, 0.0)]


def _seconds(moment: list[int]) -> float:
    """Read Ganeti's ``[seconds, microseconds]``."""
    return moment[0] + moment[1] / 1_000_000
