"""Ways in which a guest ends: by its power button, or killed."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from noded.hypervisor.kvm.home import Home
from noded.hypervisor.kvm.monitor import Silent, monitor
from noded.system.process import Process

PRESS_EVERY_S = 5.0  # a guest that boots does not hear the first press of its power button
GOING_DOWN_S = 5.0  # of patience with a guest that was told to power off and is wanted again


Besides = Callable[[], Awaitable[None]]
"""Tells a guest to power off in another way than by its power button."""


async def power_off(home: Home, wait_s: float, besides: Besides | None = None) -> None:
    """Press the power button again and again, until the guest ends or its time is over.

    Args:
        home: the guest's.
        wait_s: its time.
        besides: done after each press; there are guests that do not heed their button.
    """
    if found := home.process():
        with found, contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                while not found.has_ended:
                    await _press(home, found, besides)


async def let_end(home: Home) -> None:
    """Wait for the end of a guest that was told to power off, but not for ever."""
    if found := home.process():
        with found, contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GOING_DOWN_S):
                await found.ended()
    await clear(home)


async def clear(home: Home) -> None:
    """Kill what runs and forget the guest."""
    # Its TPM has the disk open, and does not always end with QEMU: one that QEMU has not been
    # joined with yet does not notice, nor does one that hangs.
    with contextlib.ExitStack() as held:
        # Both are held before either is killed: what is just ending is found by nothing any more,
        # and still has its disks open.
        found = [each for find in (home.process, home.tpm_process) if (each := find())]
        for process in [held.enter_context(each) for each in found]:
            await process.kill()
    home.remove()


async def _press(home: Home, found: Process, besides: Besides | None) -> None:
    """Press once, and wait a while for the end."""
    home.press_button()
    with contextlib.suppress(Silent):  # it has ended just now
        async with monitor(home.qmp_socket, home.instance) as session:
            await session.ask("system_powerdown")
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PRESS_EVERY_S):
            if besides:
                await besides()
            await found.ended()
