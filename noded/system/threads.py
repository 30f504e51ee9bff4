"""Blocking work in a thread, for callers that hold a lock over it."""

import asyncio
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


async def in_thread(work: Callable[[Unpack[Arguments]], T], *arguments: *Arguments) -> T:
    """Run ``work`` in a thread and return what it returns.

    A thread cannot be stopped. A caller that is cancelled waits for the end of its thread, so
    that whatever locks it holds are not given up while the work still goes on.
    """
    future = asyncio.get_running_loop().run_in_executor(None, work, *arguments)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.wait([future])
        raise
