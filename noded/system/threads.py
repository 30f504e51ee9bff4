"""Blocking work in a thread, for callers that hold a lock over it."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar, TypeVarTuple, Unpack

from common.errors import NodeFailure
from common.tasks import unharmed

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


async def in_thread(work: Callable[[Unpack[Arguments]], T], *arguments: *Arguments) -> T:
    """Run ``work`` in a thread and return what it returns.

    A thread cannot be stopped. A caller that is cancelled, however often, waits for the end of its
    thread, so that whatever locks it holds are not given up while the work still goes on.
    """
    return await in_thread_of(None, work, *arguments)


async def in_thread_of(
    pool: ThreadPoolExecutor | None,
    work: Callable[[Unpack[Arguments]], T],
    *arguments: *Arguments,
) -> T:
    """Do as ``in_thread``, in a thread of ``pool``; None is the loop's own."""
    doing = asyncio.get_running_loop().run_in_executor(pool, work, *arguments)
    try:
        return await unharmed(doing)
    except asyncio.CancelledError:
        while not doing.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([doing])
        raise


class Threads:
    """Some threads for work that may never end, so that nothing but the same work waits for it."""

    def __init__(self, most: int, *, patience_s: float, busy: str) -> None:
        """Have ``most``; who waits is told ``busy`` when none has come free for ``patience_s``."""
        self._pool = ThreadPoolExecutor(most)
        self._free = asyncio.Semaphore(most)
        self._patience_s = patience_s
        self._busy = busy
        self._moved_s = 0.0  # when a thread was taken or came free

    async def run(self, work: Callable[[Unpack[Arguments]], T], *arguments: *Arguments) -> T:
        """Do as ``in_thread``.

        Raises:
            NodeFailure: all threads are held; the work was not begun.
        """
        await self._take()
        try:
            return await in_thread_of(self._pool, work, *arguments)
        finally:
            self._free.release()
            self._moved_s = asyncio.get_running_loop().time()

    async def _take(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            limit = self._moved_s + self._patience_s
            try:
                async with asyncio.timeout_at(limit if self._free.locked() else None):
                    await self._free.acquire()
            except TimeoutError as error:
                if clock() >= self._moved_s + self._patience_s:
                    raise NodeFailure(self._busy) from error
            else:
                self._moved_s = clock()
                return
