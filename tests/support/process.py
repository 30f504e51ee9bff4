"""Processes of a simulation, which can be stopped in the middle of anything, and go on later."""

import asyncio
from collections.abc import Coroutine
from contextvars import ContextVar
from typing import Any, TypeVar

from common.tasks import Background
from tests.support.clock import VirtualLoop

T = TypeVar("T")


class Process(Background):
    """Owns the tasks of one process, and those that they start.

    While it is suspended, as by SIGSTOP, nothing of it happens: no step of a task, no timer. What
    it waited for has happened when it goes on, its timeouts, too.
    """

    def __init__(self) -> None:
        super().__init__()
        self._held: list[asyncio.Handle] = []
        self.is_suspended = False

    def start(self, work: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
        before = _running.set(self)
        try:
            return super().start(work, name=name)
        finally:
            _running.reset(before)

    def suspend(self) -> None:
        self.is_suspended = True
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.hand_over(_is_held)  # not before: few simulations suspend anything

    def resume(self) -> None:
        """Go on; a process that was not suspended just does."""
        self.is_suspended = False
        held, self._held = self._held, []
        for handle in held:
            handle._loop._ready.append(handle)  # type: ignore[attr-defined]

    async def close(self) -> None:
        """End it, suspended or not."""
        self.resume()
        await super().close()

    def hold(self, handle: asyncio.Handle) -> None:
        """Keep what is due until the process goes on."""
        self._held.append(handle)


_running: ContextVar[Process | None] = ContextVar("_running", default=None)


def _is_held(handle: asyncio.Handle) -> bool:
    """Have a callback of a loop wait with its process, if that is suspended."""
    process = handle._context.get(_running)  # type: ignore[attr-defined]
    if process is None or not process.is_suspended:
        return False
    process.hold(handle)
    return True
