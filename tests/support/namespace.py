"""Run a test in a network namespace of its own, which goes away with it."""

import asyncio
import ctypes
import os
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

T = TypeVar("T")

_CLONE_NEWNET = 0x40000000


def in_new_network(
    scenario: Callable[[], Awaitable[T]],
    *,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
) -> T:
    """Run ``scenario`` in a thread that has left for an empty network, and so do its children.

    The namespace has no name; the kernel removes it, and all that was made in it, when the
    last thread in it ends. Skips the test where we may not make one.
    """
    outcome: list[T] = []
    failure: list[BaseException] = []

    async def main() -> T:
        return await scenario()

    def run() -> None:
        try:
            _leave_for_new_network()
            with asyncio.Runner(loop_factory=loop_factory) as runner:
                outcome.append(runner.run(main()))
        except BaseException as error:  # noqa: BLE001  # raised again by whoever waits
            failure.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failure and isinstance(failure[0], PermissionError):
        pytest.skip(f"NO REAL NETWORK TESTED: cannot make a network namespace: {failure[0]}")
    if failure:
        raise failure[0]
    return outcome[0]


def _leave_for_new_network() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) != 0:
        code = ctypes.get_errno()
        raise PermissionError(code, os.strerror(code))
