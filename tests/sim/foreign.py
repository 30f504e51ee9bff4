"""What coordinators of other versions may have left behind: jobs that this one cannot read."""

from typing import Any

from msgspec.structs import replace

from common.messages import to_builtins
from common.model.job import Entry, OperationRecord, Status
from coordinator.operations.test.delay import Delay


def _record(wire: dict[str, Any], **fields: Any) -> OperationRecord:
    return OperationRecord(input=wire, summary="SOMETHING", **fields)


BEGUN = (Entry(event="started", step="polish the disk"),)
_DELAY = Delay(duration=1.0).to_input()
QUEUED = {
    "an unknown operation": _record({"OP_ID": "OP_COFFEE_MAKE"}),
    "an unknown parameter": _record({**_DELAY, "colour": "red"}),
    "a parameter of another type": _record({**_DELAY, "duration": "long"}),
}
HALF_DONE = {
    "an unknown operation": _record(
        {"OP_ID": "OP_COFFEE_MAKE"}, status=Status.RUNNING, plan={"cups": 2}, journal=BEGUN
    ),
    "an unreadable plan": _record(
        _DELAY, status=Status.RUNNING, plan={"cups": 2}, journal=BEGUN,
        locks=(("instance/web1", "exclusive"),),
    ),
    "steps with other titles": _record(_DELAY, status=Status.RUNNING, journal=BEGUN),
}  # fmt: skip


def is_foreign(op: OperationRecord) -> bool:
    """Tell whether an operation has begun with a step that nobody here knows."""
    return BEGUN[0] in op.journal


async def half_done(what: str) -> OperationRecord:
    """Return a record of ``HALF_DONE``, with a plan."""
    record = HALF_DONE[what]
    if record.plan is None:
        plan = await Delay(duration=1.0).prepare(None, None)  # type: ignore[arg-type]
        record = replace(record, plan=to_builtins(plan))
    return record
