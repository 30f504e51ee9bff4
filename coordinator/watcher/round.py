"""One round of the watcher, as a conversation with the coordinator.

A round yields requests and is sent their answers, so that it can be held over a socket or with a
simulated master, and be broken off anywhere: whatever it ordered is the queue's then, and the
next round looks anew.
"""

from collections.abc import Iterable
from typing import Any

from coordinator.watcher.conversation import (
    ENDED,
    LARGEST_ORDER,
    PRIORITY,
    SOURCE,
    Request,
    Round,
    Told,
    Weight,
    asked,
    order,
    ordered,
    unfinished_or_since,
)
from coordinator.watcher.decide import ATTEMPTS, MEMORY_S, PAUSES_S, Attempt, Start, decide, spoken
from coordinator.watcher.expired import forget_expired
from coordinator.watcher.silent import fence_silent
from coordinator.watcher.turned_off import note_turned_off

ARCHIVE_PATIENCE_S = 30.0

# A node that is offline or does not answer makes another status than ERROR_down: whether its
# guests run is not known, so they are left alone.
LACKS_SPACE = "paused, as what it wrote found no room"
DOWN = [
    "&",
    ["==", "admin_state", "up"],
    ["|", ["==", "status", "ERROR_down"], ["==", "guest_state", LACKS_SPACE]],
]
NOT_WHOLE = ["|", ["==", "mirror_news", True], ["==", "mirror_state", "parted"]]
TEND_S = 300.0  # between two jobs that connect the copies of one instance
REPAIR_S = 3600.0  # between two attempts to repair the storage of a group


def one_round(now: float, *, heed_pause: bool = True) -> Round:
    """Look once, and order what is to be done.

    Args:
        now: seconds since 1970.
        heed_pause: do nothing while the operator has the watcher pause.

    Returns:
        What there is to say about it.
    """
    names = [
        "watcher_pause", "drain_flag", "self_repair", "maintain_node_health",
        "enabled_user_shutdown",
    ]  # fmt: skip
    pause, drained, repairs, fences, may_turn_off = yield Request("QueryConfigValues", (names,))
    if heed_pause and pause is not None and pause > now:
        return [Told(Weight.INFO, f"The watcher pauses for another {spoken(pause - now)}.")]
    told = yield from _restart(now, drained=drained)
    if may_turn_off and not drained:
        told += yield from note_turned_off(now)
    if not drained:
        told += yield from _tend_mirrors(now)
        told += yield from forget_expired(now)
    if fences and not drained:
        told += yield from fence_silent(now)
    if repairs and not drained:
        told += yield from _repair_storage(now)
    archived, _ = yield Request(
        "AutoArchiveJobs", (None, ARCHIVE_PATIENCE_S)
    )  # as the cluster is set
    if archived:
        told.append(Told(Weight.INFO, f"Archived {archived} jobs."))
    return told


def run_hooks(now: float, *, heed_pause: bool = True) -> Round:
    """Have the operator's scripts run that follow a round, unless the watcher is to pause.

    They may take minutes, so what was done in the round is told before.
    """
    (pause,) = yield Request("QueryConfigValues", (["watcher_pause"],))
    if heed_pause and pause is not None and pause > now:
        return []
    return [Told(Weight.WARNING, text) for text in (yield Request("RunWatcherHooks", ()))]


def _restart(now: float, *, drained: bool) -> Round:
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


def _tend_mirrors(now: float) -> Round:
    """Have it noted which copies of mirrored disks are behind, and parted ones connected again."""
    fields = ["name", "pnode.group", "mirror_state", "mirror_news", "admin_state"]
    found = yield from asked("instance", fields, NOT_WHOLE)
    if not found:
        return []
    lately = unfinished_or_since(now - TEND_S)
    jobs = yield from asked("job", ["status", "ops"], lately)
    noted = {op.get("group_name") for status, ops in jobs if status not in ENDED for op in ops}
    tended = {op.get("instance_name") for _, ops in jobs for op in ops}
    news = sorted({group for _, group, _, is_news, _ in found if is_news} - noted)
    parted = [
        name
        for name, _, state, _, wanted in found
        if state == "parted" and wanted == "up" and name not in tended
    ][:LARGEST_ORDER]
    notes = [order("OP_GROUP_VERIFY_DISKS", "group_name", group, _NEWS, now) for group in news]
    links = [
        order("OP_INSTANCE_ACTIVATE_DISKS", "instance_name", name, _PARTED, now) for name in parted
    ]
    if not notes and not links:
        return []
    answers = yield from ordered((*notes, *links))
    lines = (
        *(f"Group {group}: {_NEWS}" for group in news),
        *(f"Instance {name}: {_PARTED}" for name in parted),
    )
    return [
        Told(Weight.WARNING, f"{line}; job {told}." if accepted else f"{line}, in vain: {told}")
        for line, (accepted, told) in zip(lines, answers, strict=True)
    ]


def _repair_storage(now: float) -> Round:
    """Have nodes do without devices that they have lost, and copies made anew that were on them.

    What does not help is not done again before a while: an operator has been told by then.
    """
    fields, faulty = ["pnode.group", "snodes.group"], ["==", "mirror_faulty", True]
    found = yield from asked("instance", fields, faulty)
    if not found:
        return []
    lately = [">=", "received_ts", now - REPAIR_S]
    jobs = yield from asked("job", ["ops"], lately)
    tried = {op.get("group_name") for (ops,) in jobs for op in ops if op["OP_ID"] == _REPAIR}
    groups = sorted({group for home, others in found for group in (home, *others)} - tried)
    if not groups:
        return []
    orders = [order(_REPAIR, "group_name", group, _FAULTY, now) for group in groups]
    answers = yield from ordered(orders)
    return [
        Told(Weight.WARNING, f"Group {group}: {_FAULTY}; job {told} looks what can be repaired.")
        if accepted
        else Told(Weight.WARNING, f"Group {group}: {_FAULTY}, and nobody looks: {told}")
        for group, (accepted, told) in zip(groups, answers, strict=True)
    ]


_REPAIR = "OP_GROUP_REPAIR_STORAGE"
_FAULTY = "copies of mirrored disks have lost their volumes"
_NEWS = "copies of mirrored disks fell behind, or are up to date again, which is noted"
_PARTED = "the copies of its disks are parted, and are connected again"


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
