"""asyncio's event loop without what is there to find mistakes, as simulations live in it.

A simulation takes thousands of turns, each of a step or two: what a turn and a step cost is a
tenth of its time.
"""

import asyncio
import selectors
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from heapq import heappop, heappush
from typing import Any, TypeVarTuple, Unpack

Arguments = TypeVarTuple("Arguments")
Found = list[tuple[selectors.SelectorKey, int]]  # descriptors that are ready, and for what


class QuickLoop(asyncio.SelectorEventLoop):
    """Calls the same in the same order as its parent does."""

    # asyncio's own names: what is to be run next, what later, and what else a turn has to look at
    _ready: deque[asyncio.Handle]
    _scheduled: list["_Timer"]
    _stopping: bool
    _selector: selectors.BaseSelector
    _clock_resolution: float
    _process_events: Callable[[Found], None]

    def call_soon(
        self,
        callback: Callable[[Unpack[Arguments]], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.Handle:
        step = _Step(callback, args, self, context)
        self._ready.append(step)
        return step

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Arguments]], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        timer = _Timer(when, callback, args, self, context)
        heappush(self._scheduled, timer)
        return timer

    def _run_once(self) -> None:
        """Take a turn."""
        timers = self._scheduled
        while timers and timers[0]._cancelled:
            heappop(timers)
        if self._ready or self._stopping:
            timeout: float | None = 0
        else:
            timeout = max(0, timers[0]._when - self.time()) if timers else None
        if found := self._selector.select(timeout):
            self._process_events(found)
        end = self.time() + self._clock_resolution
        while timers and timers[0]._when < end:
            self._ready.append(heappop(timers))
        for _ in range(len(self._ready)):  # what these steps make due is for the next turn
            step = self._ready.popleft()
            if not step._cancelled:
                step._run()


class _Step(asyncio.Handle):
    __slots__ = ()

    def __init__(
        self,
        callback: Callable[..., object],
        args: Sequence[Any],
        loop: asyncio.AbstractEventLoop,
        context: Context | None,
    ) -> None:
        self._callback, self._args, self._loop = callback, args, loop
        self._context = copy_context() if context is None else context
        self._cancelled = False
        self._repr = self._source_traceback = None


class _Timer(asyncio.TimerHandle):
    __slots__ = ()

    _when: float
    _cancelled: bool

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: Sequence[Any],
        loop: asyncio.AbstractEventLoop,
        context: Context | None,
    ) -> None:
        self._callback, self._args, self._loop = callback, args, loop
        self._context = copy_context() if context is None else context
        self._cancelled = self._scheduled = False
        self._repr = self._source_traceback = None
        self._when = when

    def __lt__(self, other: "_Timer") -> bool:  # type: ignore[override]  # there are no others
        return self._when < other._when
