"""Asking a guest that runs to let go of devices, which it may refuse by doing nothing."""

import asyncio
import contextlib
from collections.abc import Collection

from common.errors import Conflict
from common.noderpc.instances import GuestState
from noded.hypervisor.kvm.monitor import CommandRefused, Monitor
from noded.hypervisor.kvm.parse import parse_devices, parse_state

LET_GO_S = 20.0  # of patience with a guest that was asked to let go of devices
LOOK_EVERY_S = 0.5


async def devices(session: Monitor) -> frozenset[str]:
    """Return the names of the devices that a guest has."""
    return parse_devices(await session.ask("qom-list", path="/machine/peripheral"))


async def ask_to_let_go(
    session: Monitor, name: str, unwanted: Collection[str], *, what: str
) -> frozenset[str]:
    """Ask a guest to let go of devices, and wait until it has, but not for ever.

    Args:
        session: with its QEMU.
        name: the guest's.
        unwanted: names of devices, of which some may be gone.
        what: it is asked to let go of, as "a disk".

    Returns:
        The devices that the guest has now.

    Raises:
        Conflict: it is paused, and cannot.
    """
    left = await devices(session)
    asked = left.intersection(unwanted)
    if not asked:
        return left
    if parse_state(await session.ask("query-status")) is not GuestState.RUNNING:
        raise Conflict(
            f"{name} is paused, and cannot let go of {what}; stop it first.", instance=name
        )
    for device in sorted(asked):
        with contextlib.suppress(CommandRefused):  # it was asked before, or has done so
            await session.ask("device_del", id=device)
    loop = asyncio.get_running_loop()
    end = loop.time() + LET_GO_S
    while not (left := await devices(session)).isdisjoint(asked) and loop.time() < end:
        await session.news(LOOK_EVERY_S)
    return left


def still_has(name: str, kept: Collection[str], *, what: str) -> str:
    """Say that a guest has not let go of something."""
    return (
        f"{name} was asked to let go of its {what} {' and '.join(sorted(kept))}, and has not "
        f"done so within {LET_GO_S:g} s. It may do so still, or at its next reset: try "
        "again later, or stop it first."
    )
