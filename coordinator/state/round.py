"""What becomes durable with one commit."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from common.errors import GntError, InvalidRequest
from common.model.commit import Change
from coordinator.state.state import State

ROUND_BYTES = 2 * 2**20  # a fuller round is closed, so that no call gets too large
LARGEST_BYTES = 8 * 2**20  # of one transaction; with a round it has to fit in one call


@dataclass(eq=False)
class Round:
    """Transactions that become durable together; of changes to one row only the last counts."""

    state: State  # after them
    changes: dict[tuple[str, str], Change] = field(default_factory=dict)
    bytes: int = 0
    closed: bool = False
    done: asyncio.Event = field(default_factory=asyncio.Event)
    error: GntError | None = None

    def add(self, changes: Iterable[Change], state: State) -> None:
        for change in changes:
            self.changes[change.kind, change.id] = change
            self.bytes += memoryview(change.body).nbytes
        self.state = state
        self.closed = self.closed or self.bytes >= ROUND_BYTES


def check_size(changes: Iterable[Change]) -> None:
    """Refuse a transaction that would not fit in a call.

    Raises:
        InvalidRequest: how large it is, and how large it may be.
    """
    size = sum(memoryview(change.body).nbytes for change in changes)
    if size > LARGEST_BYTES:
        raise InvalidRequest(
            f"The change cannot be stored: it has {size >> 20} MiB, and {LARGEST_BYTES >> 20} "
            "is the most.",
            bytes=size,
        )
