"""Copies of mirrored disks: who falls behind is noted, and parted ones are connected again."""

from coordinator.watcher.conversation import (
    ENDED,
    LARGEST_ORDER,
    Round,
    Told,
    Weight,
    asked,
    order,
    ordered,
    unfinished_or_since,
)

NOT_WHOLE = ["|", ["==", "mirror_news", True], ["==", "mirror_state", "parted"]]
TEND_S = 300.0  # between two jobs that connect the copies of one instance
_NEWS = "copies of mirrored disks fell behind, or are up to date again, which is noted"
_PARTED = "the copies of its disks are parted, and are connected again"


def tend_mirrors(now: float) -> Round:
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
