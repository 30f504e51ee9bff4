"""Moving a running guest's memory from one QEMU to another, encrypted, both sides known.

The guest runs on meanwhile. The source keeps it until the target has said that it has everything
("return-path"), so a transfer that breaks at any earlier moment leaves it running where it was.
The target never runs by itself: not even when all is there, since the source may not have heard
of that and go on. It does not touch the disks before it runs ("late-block-activate"), so a source
that goes on gets them back. That a guest has left is written down before anybody is told.

With post-copy it may leave once all of its memory was sent once: it runs on the target then, and
what it has changed meanwhile follows (``post_copy``). A target's QEMU before 10.0 takes the
disks by post-copy as soon as it has loaded the devices, and not only when it runs the guest. That
harms no raw disk, to which nobody but the guest writes.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

from common.errors import Conflict, NodeFailure
from common.names import TaskId
from common.noderpc.instances import GuestState
from noded.hypervisor.interface import Tell
from noded.hypervisor.kvm.credentials import give_key, take_key
from noded.hypervisor.kvm.greeting import connect, cut
from noded.hypervisor.kvm.home import Home, Record
from noded.hypervisor.kvm.monitor import Monitor, Silent, monitor
from noded.hypervisor.kvm.parse import may_have_left, parse_state
from noded.hypervisor.kvm.progress import Progress, Transfer
from noded.hypervisor.kvm.ways import LINE, Line, Manner, progress_of, set_ways

LOOK_EVERY_S = 0.2
NEWS_S = 0.5  # for the socket of events to be free; else there are looks only
STALLED_AFTER_S = 60.0  # without a byte sent: the network is gone and nobody told us
# With its QEMU: its main loop stands still while it writes out what its disks have cached, and the
# last of the memory. A move that is given up for that would have to be begun anew.
LEAVING_S = 60.0
END_S = 30.0  # for a transfer to end that was cancelled
PASSES = 2  # as many have begun when all memory was sent once


async def has_left(session: Monitor, home: Home, status: Mapping[str, Any]) -> bool:
    """Tell whether a guest whose ``query-status`` this is has left; if so, write it down."""
    if not may_have_left(status):
        return False
    if not (await progress_of(session)).has_left:
        return False
    home.mark_left()
    return True


async def send(
    home: Home, record: Record, move: TaskId, *, line: Line, manner: Manner, tell: Tell
) -> None:
    """Begin a transfer unless one is under way; return when the guest has left.

    Raises:
        NodeFailure: it failed, and the guest runs on here; or QEMU is silent.
    """
    name, peer = record.name, line.peer
    connection: socket.socket | None = None
    async with contextlib.AsyncExitStack() as stack:
        news = await stack.enter_async_context(_news(home, name))
        if (await _look(home, name, LEAVING_S)).state is Transfer.ACTIVE:
            _check_same(home, name, move)
        elif await _ensure_runs_or_has_left(home, name, LEAVING_S):
            return  # just now
        else:
            # Ours to the end: if QEMU waits for a peer that is silent, we can wake it up.
            connection = stack.enter_context(await _connect(name, line))
            stack.callback(_cut_unless_switched, home, connection)
            async with monitor(home.qmp_socket, name) as session:
                await _begin(session, home, name, move, manner, line, connection)
        try:
            end = await _follow(home, name, news, connection, manner, tell)
        except asyncio.CancelledError:
            # If the memory has left by now, the guest's place is for others to sort out.
            with contextlib.suppress(Conflict, NodeFailure):
                await cancel(home, name, connection)
            raise
        if await _ensure_runs_or_has_left(home, name, LEAVING_S):
            return
    reason = end.error or "it was cancelled"
    if home.has_begun_post_copy:
        raise NodeFailure(
            f"Moving {name} to {peer} failed as it was about to go on there; it goes on here, with "
            f"its disks again: {reason}.",
            instance=name,
            peer=peer,
        )
    raise NodeFailure(
        f"Moving {name} to {peer} failed, and it goes on here: {reason}.", instance=name, peer=peer
    )


async def cancel(home: Home, name: str, line: socket.socket | None = None) -> None:
    """End a transfer that goes on, and have the guest run here.

    Without its connection, ``line``, whoever follows the transfer cuts that. One that is about to
    switch to post-copy is not ended: QEMU would throw away what the target may run with. It is
    told to switch instead, since whoever was about to tell it may have died on the way.

    Raises:
        Conflict: its memory has left.
        NodeFailure: QEMU does not end the transfer, or is silent.
    """
    async with monitor(home.qmp_socket, name) as session:
        is_ended = not home.has_begun_post_copy
        if (await progress_of(session)).state is Transfer.ACTIVE:
            await session.ask("migrate_cancel" if is_ended else "migrate-start-postcopy")
    if line is not None and is_ended:
        cut(line)
    try:
        async with asyncio.timeout(END_S):
            while (await _look(home, name)).state is Transfer.ACTIVE:  # noqa: ASYNC110 -- asks
                await asyncio.sleep(LOOK_EVERY_S)
    except TimeoutError as error:
        raise NodeFailure(
            f"The QEMU of {name} was told to end its migration and does not.",
            instance=name,
        ) from error
    if await _ensure_runs_or_has_left(home, name):
        raise Conflict(f"The memory of {name} has left this node for good.", instance=name)


async def _connect(name: str, line: Line) -> socket.socket:
    host, peer, reception = line
    if not reception.port:
        raise NodeFailure(
            f"Moving {name} to {peer} failed, and it goes on here: {peer} has begun to receive it, "
            "and that transfer has ended here.",
            instance=name,
            peer=peer,
        )
    try:
        return await connect(host, reception.port, reception.secret)
    except NodeFailure as error:
        raise NodeFailure(
            f"Moving {name} to {peer} failed, and it goes on here: {error}",
            instance=name,
            peer=peer,
        ) from error


async def _begin(
    session: Monitor,
    home: Home,
    name: str,
    move: TaskId,
    manner: Manner,
    line: Line,
    connection: socket.socket,
) -> None:
    """Begin a transfer on a connection, unless another has begun one meanwhile."""
    if (await progress_of(session)).state is Transfer.ACTIVE:
        _check_same(home, name, move)
        return
    # Nobody else talks to QEMU now, so what is seen here holds until it is told to begin.
    if parse_state(await session.ask("query-status")) is not GuestState.RUNNING:
        raise Conflict(f"{name} cannot be moved: it stands still.", instance=name)
    home.begin_leaving(move)
    parameters = manner.parameters
    await set_ways(session, manner.ways)
    await give_key(session, home, line.reception.secret, endpoint="client")
    await session.ask(
        "migrate-set-parameters",
        max_bandwidth=parameters.migration_bandwidth << 20,
        max_postcopy_bandwidth=parameters.migration_bandwidth << 20,
        downtime_limit=parameters.migration_downtime,
    )
    await session.give(LINE, connection)
    await session.ask("migrate", uri=f"fd:{LINE}")
    if not manner.live:
        # Not before: a guest that stands still and does not leave would have to be told to run.
        home.stand_still()
        await session.ask("stop")


def _check_same(home: Home, name: str, move: TaskId) -> None:
    if home.leaving_by != move:
        raise Conflict(f"{name} is being moved by another job already.", instance=name)


async def _follow(
    home: Home,
    name: str,
    news: Monitor | None,
    line: socket.socket | None,
    manner: Manner,
    tell: Tell,
) -> Progress:
    """Watch a transfer until the guest has left, or does not; cancel one that stands still."""
    loop = asyncio.get_running_loop()
    sent, moved_at = -1, loop.time()
    was_cancelled = is_switching = False
    while True:
        # A session for each look: others, who may want to cancel, get their turn between.
        now = await _look(home, name, LEAVING_S)
        if now.state is not Transfer.ACTIVE:
            return replace(now, error="") if was_cancelled else now
        was_cancelled = was_cancelled or now.cancelling
        if now.cancelling and line is not None:
            # QEMU itself breaks none before the handshake is over; that we do it is no error.
            cut(line)
        if manner.is_post_copy and now.rounds >= PASSES and not is_switching:
            # By our own word, not by what is written down: that comes before QEMU is told, and a
            # noded may have been killed in between.
            is_switching = await _begin_post_copy(home, name)
        if now.sent != sent:
            sent, moved_at = now.sent, loop.time()
        elif loop.time() - moved_at > STALLED_AFTER_S:
            await cancel(home, name, line)
            raise NodeFailure(
                f"Moving {name} stood still for {STALLED_AFTER_S:g} s and was cancelled; "
                "it goes on here. Check the network between the nodes.",
                instance=name,
            )
        tell(now.sentence, now.share)
        # The guest stands still from the last page to the news of it: no time to lose.
        await (news.news(LOOK_EVERY_S) if news else asyncio.sleep(LOOK_EVERY_S))


async def _begin_post_copy(home: Home, name: str) -> bool:
    """Have the guest go on elsewhere, unless its transfer was cancelled meanwhile; tell if it was.

    It may be repeated.
    """
    async with monitor(home.qmp_socket, name, patience_s=LEAVING_S) as session:
        now = await progress_of(session)
        if now.state is not Transfer.ACTIVE or now.cancelling:
            return False
        home.begin_post_copy()
        await session.ask("migrate-start-postcopy")
        return True


def _cut_unless_switched(home: Home, line: socket.socket) -> None:
    """Break a connection that QEMU may still wait for, and leave alone what the guest needs.

    It may need that before anybody knows that it has left: QEMU switches by itself, once told.
    """
    if not (home.has_left or home.has_begun_post_copy):
        cut(line)


@contextlib.asynccontextmanager
async def _news(home: Home, name: str) -> AsyncIterator[Monitor | None]:
    """Listen to QEMU's events, if nobody else does and it is new enough to tell them apart."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            news = await stack.enter_async_context(
                monitor(home.news_socket, name, patience_s=NEWS_S)
            )
        except Silent:
            yield None
        else:
            yield news


async def _look(home: Home, name: str, patience_s: float | None = None) -> Progress:
    async with monitor(home.qmp_socket, name, patience_s=patience_s) as session:
        return await progress_of(session)


async def _ensure_runs_or_has_left(home: Home, name: str, patience_s: float | None = None) -> bool:
    """After a transfer: return True if the guest has left; if not, it runs here.

    QEMU resumes a guest whose transfer failed; make sure, in case that failed too. One that fails
    as it switches to post-copy is resumed without the disks, which its guest was to have there: at
    its first write QEMU would end. "cont" takes them back; the target was not told to run.
    """
    async with monitor(home.qmp_socket, name, patience_s=patience_s) as session:
        await take_key(session, home)
        status = await session.ask("query-status")
        if await has_left(session, home, status):
            return True
        match parse_state(status):
            case GuestState.MIGRATED | GuestState.PAUSED:
                await session.ask("cont")
            case GuestState.RUNNING if home.has_begun_post_copy:
                await session.ask("cont")
            case _:
                pass
    home.go_on()
    return False
