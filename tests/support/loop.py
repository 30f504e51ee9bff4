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
_new = object.__new__
Found = list[tuple[selectors.SelectorKey, int]]  # descriptors that are ready, and for what


class QuickLoop(asyncio.SelectorEventLoop):
    """Calls the same in the same order as its parent does."""

    # asyncio's own names: what is to be run next, what later, and what else a turn has to look at
    _ready: deque[asyncio.Handle]
    _scheduled: list[tuple[float, "_Timer"]]  # its times first: pairs are compared without Python
    _stopping: bool
    _selector: selectors.BaseSelector
    _clock_resolution: float
    _process_events: Callable[[Found], None]
    turns_at_once = 1  # until timers and descriptors are looked at; timers that are due end it

    def call_soon(
        self,
        callback: Callable[[Unpack[Arguments]], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.Handle:
        # Not through a constructor: that call takes as long as all the rest.
        step = _new(_Step)
        step._callback, step._args, step._loop = callback, args, self
        step._context = copy_context() if context is None else context
        step._cancelled = False
        self._ready.append(step)
        return step

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Arguments]], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        timer = _new(_Timer)
        timer._callback, timer._args, timer._loop = callback, args, self
        timer._context = copy_context() if context is None else context
        timer._cancelled = timer._scheduled = False
        timer._when = when
        heappush(self._scheduled, (when, timer))
        return timer

    def _run_once(self) -> None:
        """Take a turn, or some that follow each other at one moment."""
        timers = self._scheduled
        while timers and timers[0][1]._cancelled:
            heappop(timers)
        if self._ready or self._stopping:
            timeout: float | None = 0
        else:
            timeout = max(0, timers[0][0] - self.time()) if timers else None
        if found := self._selector.select(timeout):
            self._process_events(found)
        end = self.time() + self._clock_resolution
        while timers and timers[0][0] < end:
            self._ready.append(heappop(timers)[1])
        for _ in range(self.turns_at_once):
            for _ in range(len(self._ready)):  # what these steps make due is for the next turn
                step: Any = self._ready.popleft()  # asyncio does not declare what it has
                if step._cancelled:
                    continue
                try:
                    step._context.run(step._callback, *step._args)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:  # noqa: BLE001  # as in asyncio: told, and gone on
                    what = f"Exception in callback {step._callback!r}"
                    told = {"message": what, "exception": error, "handle": step}
                    self.call_exception_handler(told)
            if not self._ready or self._stopping or (timers and timers[0][0] < end):
                return


class _Step(asyncio.Handle):
    __slots__ = ()

    _callback: Callable[..., object]
    _args: Sequence[Any]
    _loop: asyncio.AbstractEventLoop
    _context: Context
    _cancelled: bool
    _repr = None  # these two say something only while mistakes are looked for
    _source_traceback = None

    def cancel(self) -> None:
        self._cancelled, self._callback, self._args = True, _nothing, ()  # it holds on to nothing


class _Timer(asyncio.TimerHandle):
    __slots__ = ()

    _callback: Callable[..., object]
    _args: Sequence[Any]
    _loop: asyncio.AbstractEventLoop
    _context: Context
    _cancelled: bool
    _scheduled: bool
    _when: float
    _repr = None
    _source_traceback = None

    def cancel(self) -> None:
        self._cancelled, self._callback, self._args = True, _nothing, ()

    __eq__, __hash__ = object.__eq__, object.__hash__  # asked for two timers of one moment

    def __lt__(self, other: "_Timer") -> bool:  # type: ignore[override]  # there are no others
        return self._when < other._when


def _nothing() -> None:
    """Is what a step that was cancelled does."""
