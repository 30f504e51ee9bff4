"""An event loop in virtual time: when every task waits, the clock jumps to the next timer.

An hour of sleeping takes no time, and a run depends on nothing but its inputs: work handed to a
thread is done in the loop, between two steps of other tasks. Real sockets between tasks of one
simulation work too; nothing outside the process can take part.
"""

import asyncio
import selectors
import weakref
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar
from unittest.mock import patch

from tests.support.loop import Found, QuickLoop

T = TypeVar("T")

DAY_S = 86_400.0
STEPS_WITHOUT_PROGRESS = 1_000_000
TURNS_AT_ONCE = 10
CLEAN_UP_S = 3_600.0
FEW_TASKS = 1_000


class Deadlock(AssertionError):
    """Every task waits and no timer is set; says which task waits where."""


class EndlessRun(AssertionError):
    """The scenario passed its limit of virtual time, or loops without letting time pass."""


class Unnoticed(AssertionError):
    """A task or callback failed and nobody looked at its result."""


def simulate(scenario: Coroutine[Any, Any, T], *, limit_s: float = DAY_S) -> T:
    """Run ``scenario`` in virtual time, which starts at 0.

    Raises:
        Deadlock: nothing can ever happen again.
        EndlessRun: more than ``limit_s`` virtual seconds passed.
        Unnoticed: the scenario came to its end, but something failed in the background.
    """
    loop = VirtualLoop(limit_s)
    with _off_the_list(), _found_at_once(loop):
        try:
            result = loop.run_until_complete(scenario)
        finally:
            loop.end()
    if failures := loop.unnoticed():
        cause = next((each["exception"] for each in failures if "exception" in each), None)
        raise Unnoticed("\n".join(map(_complaint, failures))) from cause
    return result


@contextmanager
def _off_the_list() -> Iterator[None]:
    """Have asyncio keep no list of all tasks, in Python 3.11 a WeakSet: a loop has its own."""
    if (listed := getattr(asyncio.tasks, "_all_tasks", None)) is None:
        yield
        return
    with patch.object(listed, "add", lambda _task: None):
        yield


@contextmanager
def _found_at_once(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Have all find their loop without a question: Python 3.11 asks which process this is."""
    with (
        patch.object(asyncio, "get_running_loop", lambda: loop),
        patch.object(asyncio.events, "get_running_loop", lambda: loop),
    ):
        yield


class VirtualLoop(QuickLoop):
    """The event loop of a simulation; ``time()`` is in virtual seconds."""

    def __init__(self, limit_s: float = DAY_S) -> None:
        self._waits = self._new_waits(limit_s)
        self._complaints: list[dict[str, Any]] = []
        self._tasks: list[weakref.ref[asyncio.Task[Any]]] = []  # a WeakSet is ten times slower
        self._most_tasks = FEW_TASKS  # until those that are gone are forgotten
        super().__init__(self._waits)
        self.set_exception_handler(lambda _loop, context: self._complaints.append(context))

    def _new_waits(self, limit_s: float) -> "Waits":
        return Waits(self, limit_s)

    def time(self) -> float:
        return self._waits.now_s

    def hand_over(self, takes: Callable[[asyncio.Handle], bool]) -> None:
        """Show ``takes`` what is due from now on; what it does not take is run."""
        self._ready = _Due(self._ready, takes)

    def run_in_executor(  # type: ignore[override]  # typeshed says coroutine, asyncio: future
        self, executor: object, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Run ``func`` a little later in the loop's own thread, so that runs repeat exactly."""
        future: asyncio.Future[T] = self.create_future()
        self.call_soon(_fill, future, func, args)
        return future

    def unnoticed(self) -> list[dict[str, Any]]:
        """List what failed in the background, as contexts of asyncio's exception handler."""
        # A task speaks up when it is collected; those still held by something are asked, which
        # is a hundred times quicker than having the garbage collector run.
        for task in filter(None, (each() for each in self._tasks)):
            if task.done() and getattr(task, "_log_traceback", False):
                message = f"nobody looked at the failure of task {task.get_name()}"
                self._complaints.append({"message": message, "exception": task.exception()})
        return self._complaints

    def create_task(
        self, coro: Coroutine[Any, Any, T] | Generator[Any, None, T], **options: Any
    ) -> asyncio.Task[T]:
        """Begin a task, and remember it."""
        task: asyncio.Task[T] = asyncio.Task(coro, loop=self, **options)
        self._tasks.append(weakref.ref(task))
        if len(self._tasks) > self._most_tasks:
            self._tasks = [each for each in self._tasks if each() is not None]
            self._most_tasks = FEW_TASKS + 2 * len(self._tasks)
        return task

    def end(self) -> None:
        """Cancel all tasks, let them end, and close the loop."""
        left = self._unfinished()
        for task in left:
            task.cancel()
        if left:
            self.run_until_complete(asyncio.wait(left))
        self.run_until_complete(self.shutdown_asyncgens())
        self.close()

    def waiting(self) -> str:
        """List the unfinished tasks, one a line, each with the place where it waits."""
        tasks = sorted(self._unfinished(), key=lambda task: task.get_name())
        return "\n".join(f"  {task.get_name()}: {_place(task)}" for task in tasks)

    def _unfinished(self) -> list[asyncio.Task[Any]]:
        return [task for each in self._tasks if (task := each()) is not None and not task.done()]


class _Due(deque[asyncio.Handle]):
    """Callbacks that are to be run next, but for those that somebody takes."""

    def __init__(
        self, due: Iterable[asyncio.Handle], takes: Callable[[asyncio.Handle], bool]
    ) -> None:
        super().__init__(due)
        self._takes = takes

    def append(self, handle: asyncio.Handle) -> None:
        if not self._takes(handle):
            super().append(handle)


class Waits(selectors.DefaultSelector):
    """Where the loop would sleep: moves the clock instead."""

    def __init__(self, loop: VirtualLoop, limit_s: float) -> None:
        super().__init__()
        self.now_s = 0.0
        self._loop = loop
        self._limit_s = limit_s
        self._steps = 0  # since time last moved
        self._watched = 0  # descriptors

    def register(self, *args: Any) -> selectors.SelectorKey:
        self._watch(self._watched + 1)
        return super().register(*args)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        self._watch(self._watched - 1)
        return super().unregister(fileobj)

    def select(self, timeout: float | None = None) -> Found:
        ready = super().select(0) if self._watched > 1 else []
        if ready or timeout == 0:
            self._steps += 1
            if self._steps > STEPS_WITHOUT_PROGRESS:
                self._steps = 0
                raise EndlessRun(f"busy at {self.now_s:g} s without end:\n{self._loop.waiting()}")
        elif timeout is None:
            raise Deadlock(f"every task waits and no timer is set:\n{self._loop.waiting()}")
        else:
            self._pass(timeout)
        return ready

    def _watch(self, descriptors: int) -> None:
        # One is the loop's own; a simulation without sockets never asks the kernel.
        self._watched = descriptors
        self._loop.turns_at_once = 1 if descriptors > 1 else TURNS_AT_ONCE

    def _pass(self, seconds: float) -> None:
        self._steps = 0
        self.now_s += seconds
        if self.now_s > self._limit_s:
            passed, self._limit_s = self._limit_s, self.now_s + CLEAN_UP_S  # to end its tasks in
            raise EndlessRun(f"still going on after {passed:g} s:\n{self._loop.waiting()}")


def _fill(future: asyncio.Future[T], func: Callable[..., T], args: tuple[Any, ...]) -> None:
    if future.cancelled():
        return
    try:
        future.set_result(func(*args))
    except Exception as error:  # noqa: BLE001  # handed to whoever awaits the future
        future.set_exception(error)


def _complaint(context: dict[str, Any]) -> str:
    error = context.get("exception")
    return f"{context['message']}: {error!r}" if error else str(context["message"])


def _place(task: asyncio.Task[Any]) -> str:
    """Say where ``task`` stands, outermost call first, and on what it waits."""
    calls, innermost = [], None
    step: Any = task.get_coro()
    while step is not None:
        frame = getattr(step, "cr_frame", None) or getattr(step, "gi_frame", None)
        if isinstance(frame, FrameType):
            innermost = frame
            calls.append(f"{frame.f_code.co_name} ({_short(frame)})")
        step = getattr(step, "cr_await", None) or getattr(step, "gi_yieldfrom", None)
    return " > ".join(calls) + _on_what(task, innermost)


def _short(frame: FrameType) -> str:
    return f"{'/'.join(frame.f_code.co_filename.split('/')[-2:])}:{frame.f_lineno}"


def _on_what(task: asyncio.Task[Any], innermost: FrameType | None) -> str:
    waiter = getattr(task, "_fut_waiter", None)
    if isinstance(waiter, asyncio.Task):
        return f", for task {waiter.get_name()}"
    # An event, lock or queue is told by the method of asyncio's that waits in it.
    owner = innermost.f_locals.get("self") if innermost else None
    if type(owner).__module__.startswith("asyncio."):
        return f", on {owner!r}"
    return ""
