"""What is known of a guest for certain: from its process, its QEMU, and what was written down."""

import asyncio
import contextlib
from typing import NamedTuple

from common.noderpc.instances import GuestState, Rest
from noded.hypervisor.kvm.coming import has_arrived
from noded.hypervisor.kvm.credentials import take_key
from noded.hypervisor.kvm.home import Home
from noded.hypervisor.kvm.migration import has_left
from noded.hypervisor.kvm.monitor import HungUp, Monitor, Silent, monitor
from noded.hypervisor.kvm.parse import lacks_space, parse_state
from noded.hypervisor.kvm.pulse import Pulses
from noded.hypervisor.kvm.ways import progress_of
from noded.system.process import Process

ENDING_S = 2.0  # between the end of a QEMU's monitor and that of its process


class Seen(NamedTuple):
    """A guest as it is.

    Attributes:
        arrived: all memory is here of a guest that comes.
        lacks_space: it stands still, as what it wrote found no room.
        rest: of its memory, if it goes on elsewhere, or here, before all of that does.
    """

    state: GuestState
    arrived: bool = False
    lacks_space: bool = False
    rest: Rest = Rest.NONE


async def look(home: Home, pulses: Pulses, *, listing: bool = False) -> Seen | None:
    """Return a guest's state; None for one that was never started, or is forgotten.

    Args:
        home: the guest's.
        pulses: tell how long to wait for its answer.
        listing: among others, for whom it must not be waited long.
    """
    record, found = home.record(), home.process()
    if found is None:
        pulses.heard(home.instance)
        if record is None:
            return None
        return Seen(GuestState.MIGRATED if home.has_left else GuestState.STOPPED)
    with found:
        if home.has_left and not home.has_begun_post_copy:
            return Seen(GuestState.MIGRATED)
        waits = record is not None and home.waits(record)
        seen = await _ask(home, found, pulses, waits=waits, listing=listing)
    if home.has_left:
        return _as_left(seen)
    if seen is not None:
        return seen
    # One that hangs still holds its memory and its disks, and may go on at any time. Only what
    # was never told to run is known not to.
    if waits:
        return Seen(GuestState.INCOMING)
    return Seen(GuestState.UNKNOWN, rest=Rest.CUT if home.lacks_memory else Rest.NONE)


def _as_left(seen: Seen | None) -> Seen:
    """Say what is here of a guest that has left by post-copy; who is silent sends nothing."""
    if seen is None:
        return Seen(GuestState.MIGRATED, rest=Rest.CUT)
    return seen if seen.state is GuestState.MIGRATED else Seen(GuestState.MIGRATED)


async def _ask(
    home: Home, found: Process, pulses: Pulses, *, waits: bool, listing: bool
) -> Seen | None:
    """Return what QEMU says; None if it says nothing, though its process is there."""
    patience_s = pulses.patience_s(home.instance, listing=listing)
    if not patience_s:
        return None
    try:
        async with monitor(home.qmp_socket, home.instance, patience_s=patience_s) as session:
            seen = await _question(session, home, waits=waits)
    except Silent as silent:
        if found.has_ended or (isinstance(silent, HungUp) and await _ends(found)):
            return Seen(GuestState.STOPPED)
        pulses.missed(home, patience_s)
        return None
    pulses.heard(home.instance)
    return seen


async def _ends(found: Process) -> bool:
    """Wait a moment for the end of a QEMU whose monitor is closed; tell whether it came."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(ENDING_S):
            await found.ended()
    return found.has_ended


async def _question(session: Monitor, home: Home, *, waits: bool) -> Seen:
    status = await session.ask("query-status")
    state = parse_state(status)
    if waits:
        # Whatever QEMU calls it: it has not been told to run.
        return Seen(GuestState.INCOMING, arrived=await has_arrived(session))
    if await has_left(session, home, status):
        rest = await _rest(session) if home.has_begun_post_copy else Rest.NONE
        return Seen(GuestState.MIGRATED, rest=rest)
    if state is GuestState.MIGRATED:
        return Seen(GuestState.PAUSED)
    return Seen(state, lacks_space=lacks_space(status), rest=await _missing(session, home))


async def _missing(session: Monitor, home: Home) -> Rest:
    """Tell what a guest lacks that runs here, and has come from another node."""
    if not home.lacks_memory:
        return Rest.NONE
    rest = await _rest(session)
    if not rest:
        await take_key(session, home)
        home.have_memory()
    return rest


async def _rest(session: Monitor) -> Rest:
    return (await progress_of(session)).rest
