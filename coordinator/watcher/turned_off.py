"""Instances that their users have turned off: they are marked so, and stay down."""

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

TURNED_OFF = ["&", ["==", "admin_state", "up"], ["==", "status", "USER_down"]]
_WHY = "its user has turned it off"


def note_turned_off(now: float) -> Round:
    """Have it recorded that instances are down because that was wanted."""
    found = [name for (name,) in (yield from asked("instance", ["name"], TURNED_OFF))]
    if not found:
        return []
    jobs = yield from asked("job", ["status", "ops"], unfinished_or_since(now))
    busy = {op.get("instance_name") for status, ops in jobs if status not in ENDED for op in ops}
    names = [name for name in found if name not in busy][:LARGEST_ORDER]
    if not names:
        return []
    orders = [
        order("OP_INSTANCE_SHUTDOWN", "instance_name", name, _WHY, now)
        | {"admin_state_source": "user"}
        for name in names
    ]
    answers = yield from ordered(orders)
    return [
        Told(Weight.INFO, f"Instance {name}: {_WHY}; job {told} notes that.")
        if accepted
        else Told(Weight.WARNING, f"Instance {name}: {_WHY}, and that is not noted: {told}")
        for name, (accepted, told) in zip(names, answers, strict=True)
    ]
