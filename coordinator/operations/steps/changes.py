"""Steps that change objects of the configuration and nothing else."""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from common.model.entity import Entity
from coordinator.operations.step import Edit, Step, record
from coordinator.state.kinds import kind_of
from coordinator.state.rows import Delete, Put, Update
from coordinator.state.state import State

_COUNTED = frozenset({"ctime", "mtime", "serial_no", "schema"})  # by each change anew


def change(title: str, before: Sequence[Entity], after: Sequence[Entity], now: float) -> Step:
    """Make a step that turns some objects into others; undone, they are as before.

    Of objects that are there before and after, the fields that differ are changed in the newest
    record: others may have changed the rest meanwhile.

    Args:
        title: of the step.
        before: as they are.
        after: as they will be; those that are only here are new, those that are not here go.
        now: seconds since 1970.
    """
    return record(title, turn(before, after, now), undo=turn(after, before, now))


def differing(before: Entity, after: Entity) -> dict[str, Any]:
    """Return the fields of ``after`` that are not as before, but for those that count changes."""
    names = (name for name in after.__struct_fields__ if name not in _COUNTED)
    values = ((name, getattr(after, name)) for name in names)
    return {name: value for name, value in values if value != getattr(before, name)}


def turn(before: Sequence[Entity], after: Sequence[Entity], now: float) -> Edit:
    """Return the edit that turns some objects into others, as in ``change``."""
    old = {item.uuid: item for item in before}
    new = {item.uuid: item for item in after}

    def edit(state: State) -> Iterable[Update]:
        gone: list[Update] = [Delete(item) for uuid, item in old.items() if uuid not in new]
        kept = (_changed(state, old[uuid], new[uuid], now) for uuid in new if uuid in old)
        come = (Put(item) for uuid, item in new.items() if uuid not in old)
        return [*gone, *kept, *come]

    return edit


def _changed(state: State, old: Entity, new: Entity, now: float) -> Put:
    present: Any = state.config.table(kind_of(old))[old.uuid]
    serial_no = present.serial_no + 1
    return Put(replace(present, **differing(old, new), mtime=now, serial_no=serial_no))
