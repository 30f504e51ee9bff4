"""Which nodes did not answer lately: nobody shall wait for the same silence again and again.

Whoever only looks (lists, verify, placement) waits in full for a node once. From then on, until it
answers anything, a look is a glance: it goes on in the background, and its caller is told after
half a second that nothing has come. What it brings later is how the node is trusted again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from common.errors import GntError
from common.names import NodeId
from common.tasks import Background

GLANCE_S = 0.5
AGAIN_S = 2.0  # until another attempt is made beside one that goes on: the first may be lost

Outcome = bytes | GntError


@dataclass(frozen=True, slots=True)
class _Attempt:
    begun_s: float
    outcome: asyncio.Task[Outcome]


class Silence:
    """Since when each node, or one call to it, has not answered; by the loop's clock."""

    def __init__(self) -> None:
        self._nodes: dict[NodeId, float] = {}
        self._calls: dict[tuple[NodeId, str], float] = {}
        self._attempts: dict[tuple[NodeId, str, bytes], _Attempt] = {}
        self._background = Background()

    def since(self, node: NodeId, call: str) -> float | None:
        """Return since when there was no answer; None if the last one came in time."""
        return self._nodes.get(node, self._calls.get((node, call)))

    def of(self, node: NodeId) -> float | None:
        """Return since when a node as a whole has been silent; None if it was not, lately."""
        return self._nodes.get(node)

    def begins(self, node: NodeId, call: str, asked_s: float) -> None:
        """Note that a call made at ``asked_s`` was not answered in its time."""
        self._nodes.setdefault(node, asked_s)
        self._calls.setdefault((node, call), asked_s)

    def ends(self, node: NodeId, call: str) -> None:
        """Note an answer: the node is there, if slow with other calls perhaps."""
        self._nodes.pop(node, None)
        self._calls.pop((node, call), None)

    async def glance(
        self, node: NodeId, call: str, body: bytes, ask: Callable[[], Awaitable[bytes]]
    ) -> Outcome | None:
        """Look at a node that has been silent; None: nothing has come yet.

        All who look for the same share one attempt.

        Args:
            node: by UUID.
            call: its name.
            body: what is asked.
            ask: asks, and waits in full.
        """
        key, now_s = (node, call, body), asyncio.get_running_loop().time()
        attempt = self._attempts.get(key)
        if attempt is None or now_s - attempt.begun_s >= AGAIN_S:
            attempt = self._begin(key, _outcome(ask), now_s)
        left_s = attempt.begun_s + GLANCE_S - now_s
        await asyncio.wait([attempt.outcome], timeout=max(left_s, 0.0))
        return attempt.outcome.result() if attempt.outcome.done() else None

    async def close(self) -> None:
        """End what still goes on."""
        await self._background.close()

    def _begin(
        self, key: tuple[NodeId, str, bytes], asking: Coroutine[Any, Any, Outcome], now_s: float
    ) -> _Attempt:
        task = self._background.start(asking, name=f"look again with {key[1]}")
        attempt = self._attempts[key] = _Attempt(now_s, task)
        task.add_done_callback(lambda _: self._ended(key, attempt))
        return attempt

    def _ended(self, key: tuple[NodeId, str, bytes], attempt: _Attempt) -> None:
        if self._attempts.get(key) is attempt:
            del self._attempts[key]


async def _outcome(ask: Callable[[], Awaitable[bytes]]) -> Outcome:
    try:
        return await ask()
    except GntError as error:
        return error
