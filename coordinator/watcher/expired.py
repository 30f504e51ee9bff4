"""Reserved instances whose time is over: they go, unless somebody has made them by then."""

from coordinator.watcher.conversation import (
    LARGEST_ORDER,
    Round,
    Told,
    Weight,
    asked,
    order,
    ordered,
    unfinished_or_since,
)

RESERVED = ["==", "forthcoming", True]
AGAIN_S = 3600.0  # between two attempts to remove one, which hooks may refuse
_EXPIRED = "its reservation has expired"


def forget_expired(now: float) -> Round:
    """Have reserved instances removed that were to be kept until now."""
    fields = ["uuid", "name", "expires"]
    reserved = yield from asked("instance", fields, RESERVED)
    expired = {uuid: name for uuid, name, until in reserved if until is not None and until <= now}
    if not expired:
        return []
    lately = unfinished_or_since(now - AGAIN_S)
    jobs = yield from asked("job", ["ops"], lately)
    tried = {op.get("instance_name") for (ops,) in jobs for op in ops if op.get("if_expired")}
    left = [uuid for uuid in expired if uuid not in tried][:LARGEST_ORDER]
    if not left:
        return []
    answers = yield from ordered(_removal(uuid, now) for uuid in left)
    return [
        Told(Weight.WARNING, f"Instance {expired[uuid]}: {_EXPIRED}; job {told} forgets it.")
        if accepted
        else Told(Weight.WARNING, f"Instance {expired[uuid]}: {_EXPIRED}, and it stays: {told}")
        for uuid, (accepted, told) in zip(left, answers, strict=True)
    ]


def _removal(uuid: str, now: float) -> dict[str, object]:
    """Return the order; it does nothing to what was made, or kept for longer, meanwhile."""
    return order("OP_INSTANCE_REMOVE", "instance_name", uuid, _EXPIRED, now) | {"if_expired": True}
