"""Devices that nodes have lost: they do without, and copies that were there are made anew."""

from coordinator.watcher.conversation import Round, Told, Weight, asked, order, ordered

REPAIR_S = 3600.0  # between two attempts to repair the storage of a group
_REPAIR = "OP_GROUP_REPAIR_STORAGE"
_FAULTY = "copies of mirrored disks have lost their volumes"


def repair_storage(now: float) -> Round:
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
