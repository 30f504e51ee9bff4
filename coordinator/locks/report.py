"""What operators see of locks: the rows of ``gnt-debug locks``, and why a job waits."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from coordinator.locks.names import LockName, Mode, Owner
from coordinator.locks.table import LockTable


@dataclass(frozen=True, slots=True)
class LockRow:
    """One lock that somebody holds or waits for."""

    name: LockName
    mode: Mode | None  # None while nobody holds it
    owners: tuple[Owner, ...]
    pending: tuple[tuple[Owner, Mode], ...]  # whoever goes first, first


def lock_rows(table: LockTable) -> tuple[LockRow, ...]:
    """List all locks in use, by level and name."""
    return tuple(_row(table, name) for name in sorted({*table.held.names(), *table.wanted.names()}))


def explain(table: LockTable, owner: Owner) -> tuple[str, ...]:
    """Say in sentences what ``owner`` waits for, one for each lock; none if it doesn't wait."""
    waiter = table.waiter(owner)
    if waiter is None:
        return ()
    sentences = []
    for lock, holders, before in table.obstacles(waiter):
        reasons = []
        if holders:
            reasons.append(f"held by {_list(holders)}")
        if before:
            reasons.append(f"promised to {_list(before)} next")
        sentences.append(f"{owner} waits for {lock}, {' and '.join(reasons)}")
    return tuple(sentences)


def _row(table: LockTable, name: LockName) -> LockRow:
    held = tuple(table.held.on(name))
    waiting = sorted(table.wanted.on(name), key=lambda claim: claim[0].rank)
    return LockRow(
        name=name,
        mode=held[0][1] if held else None,
        owners=tuple(owner for owner, _ in held),
        pending=tuple((waiter.owner, mode) for waiter, mode in waiting),
    )


def _list(owners: Sequence[Owner], at_most: int = 5) -> str:
    """Name the first few: hundreds of jobs may share a lock."""
    named: Iterable[str] = owners[:at_most]
    rest = len(owners) - at_most
    return ", ".join(named) + (f" and {rest} more" if rest > 0 else "")
