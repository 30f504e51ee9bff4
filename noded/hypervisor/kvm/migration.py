"""Moving a running guest's memory from one QEMU to another, encrypted, both sides known.

The guest runs on meanwhile. The source keeps it until the target has said that it has everything
("return-path"), so a transfer that breaks at any earlier moment leaves it running where it was.
The target never runs by itself: not even when all is there, since the source may not have heard
of that and go on. It does not touch the disks before it runs ("late-block-activate"), so a source
that goes on gets them back. That a guest has left is written down before anybody is told.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Collection
from typing import NamedTuple

from common.errors import Conflict, NodeFailure
from common.model.kvm import KvmParameters
from common.names import TaskId
from common.noderpc.instances import GuestState, Reception
from noded.hypervisor.interface import Tell
from noded.hypervisor.kvm import credentials
from noded.hypervisor.kvm.greeting import connect, cut, held
from noded.hypervisor.kvm.home import Home, Record
from noded.hypervisor.kvm.monitor import CommandRefused, Monitor, Silent, monitor
from noded.hypervisor.kvm.parse import Progress, Transfer, parse_progress, parse_state

LOOK_EVERY_S = 0.2
NEWS_S = 0.5  # for the socket of events to be free; else there are looks only
STALLED_AFTER_S = 60.0  # without a byte sent: the network is gone and nobody told us
END_S = 30.0  # for a transfer to end that was cancelled

_KEY, _LINE = "move-key", "move-line"  # what QEMU calls them
# The guest is slowed down when it changes memory faster than the network carries it.
_CAPABILITIES = ("return-path", "auto-converge", "late-block-activate", "events")
_OPTIONAL = ("xbzrle",)  # what only the source has to know


async def receive(home: Home, name: str, secret: str, line: socket.socket) -> None:
    """Have a fresh QEMU receive memory from a connection; our copy of that is closed.

    Raises:
        NodeFailure: QEMU refuses or is silent.
    """
    with line:
        async with monitor(home.qmp_socket, name) as session:
            await _prepare(session, home, secret, endpoint="server")
            await session.give(_LINE, line)
            await session.ask("migrate-incoming", uri=f"fd:{_LINE}")


async def resume(home: Home, name: str) -> None:
    """Have a guest run whose memory is here.

    Raises:
        Conflict: it is not here as a whole.
        NodeFailure: QEMU is silent, or cannot open the guest's disks.
    """
    async with monitor(home.qmp_socket, name) as session:
        # To a QEMU that still waits, "cont" would mean to run as soon as all is there.
        if not await has_arrived(session):
            raise Conflict(f"{name} cannot run here: its memory has not arrived.", instance=name)
        home.let_run()
        await session.ask("cont")
        await _forget_key(session, home)


async def has_arrived(session: Monitor) -> bool:
    """Tell whether a target has all of a guest's memory, and has ended the transfer."""
    if parse_state(await session.ask("query-status")) is GuestState.INCOMING:
        return False
    return (await progress_of(session)).state is Transfer.COMPLETED


async def has_left(session: Monitor, home: Home) -> bool:
    """Tell whether a guest that stands still after a transfer has left; if so, write it down."""
    if (await progress_of(session)).state is not Transfer.COMPLETED:
        return False
    home.mark_left()
    return True


class Line(NamedTuple):
    """Where the memory goes: an address, the target's name, and what it has told."""

    host: str
    peer: str
    reception: Reception


class Manner(NamedTuple):
    """How it goes there: as ``parameters`` say, the guest running meanwhile if ``live``."""

    parameters: KvmParameters
    live: bool


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
        if (await _look(home, name)).state is Transfer.ACTIVE:
            _check_same(home, name, move)
        elif await _ensure_runs_or_has_left(home, name):
            return  # just now
        else:
            # Ours to the end: if QEMU waits for a peer that is silent, we can wake it up.
            connection = stack.enter_context(held(await _connect(name, line)))
            async with monitor(home.qmp_socket, name) as session:
                await _begin(session, home, name, move, manner, line, connection)
        try:
            end = await _follow(home, name, news, connection, tell)
        except asyncio.CancelledError:
            # If the memory has left by now, the guest's place is for others to sort out.
            with contextlib.suppress(Conflict, NodeFailure):
                await cancel(home, name, connection)
            raise
    if await _ensure_runs_or_has_left(home, name):
        return
    reason = end.error or "it was cancelled"
    raise NodeFailure(
        f"Moving {name} to {peer} failed, and it goes on here: {reason}.", instance=name, peer=peer
    )


async def cancel(home: Home, name: str, line: socket.socket | None = None) -> None:
    """End a transfer that goes on, and have the guest run here.

    Without its connection, ``line``, whoever follows the transfer cuts that.

    Raises:
        Conflict: its memory has left.
        NodeFailure: QEMU does not end the transfer, or is silent.
    """
    async with monitor(home.qmp_socket, name) as session:
        if (await progress_of(session)).state is Transfer.ACTIVE:
            await session.ask("migrate_cancel")
    if line is not None:
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


async def progress_of(session: Monitor) -> Progress:
    """Ask QEMU how its transfer is going."""
    return parse_progress(await session.ask("query-migrate"))


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
    wanted = parameters.migration_caps.split(":")
    await _prepare(session, home, line.reception.secret, endpoint="client", wanted=wanted)
    await session.ask(
        "migrate-set-parameters",
        max_bandwidth=parameters.migration_bandwidth << 20,
        downtime_limit=parameters.migration_downtime,
    )
    await session.give(_LINE, connection)
    await session.ask("migrate", uri=f"fd:{_LINE}")
    if not manner.live:
        # Not before: a guest that stands still and does not leave would have to be told to run.
        home.stand_still()
        await session.ask("stop")


def _check_same(home: Home, name: str, move: TaskId) -> None:
    if home.leaving_by != move:
        raise Conflict(f"{name} is being moved by another job already.", instance=name)


async def _follow(
    home: Home, name: str, news: Monitor | None, line: socket.socket | None, tell: Tell
) -> Progress:
    """Watch a transfer until it has ended; cancel one that stands still."""
    loop = asyncio.get_running_loop()
    sent, moved_at = -1, loop.time()
    while True:
        # A session for each look: others, who may want to cancel, get their turn between.
        now = await _look(home, name)
        if now.state is not Transfer.ACTIVE:
            return now
        if now.cancelling and line is not None:
            cut(line)  # QEMU itself breaks none before the handshake is over
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


async def _look(home: Home, name: str) -> Progress:
    async with monitor(home.qmp_socket, name) as session:
        return await progress_of(session)


async def _ensure_runs_or_has_left(home: Home, name: str) -> bool:
    """After a transfer: return True if the guest has left; if not, it runs here.

    QEMU resumes a guest whose transfer failed; make sure, in case that failed too.
    """
    async with monitor(home.qmp_socket, name) as session:
        await _forget_key(session, home)
        match parse_state(await session.ask("query-status")):
            case GuestState.MIGRATED:
                if await has_left(session, home):
                    return True
                await session.ask("cont")
            case GuestState.PAUSED:
                await session.ask("cont")
            case _:
                pass
    home.go_on()
    return False


async def _prepare(
    session: Monitor, home: Home, secret: str, *, endpoint: str, wanted: Collection[str] = ()
) -> None:
    """Give QEMU the key of this move, and the ways in which we move guests."""
    await _forget_key(session, home)
    named = {"username": credentials.USER} if endpoint == "client" else {}
    await session.ask(
        "object-add",
        qom_type="tls-creds-psk",
        id=_KEY,
        endpoint=endpoint,
        dir=str(credentials.lend(home, secret)),
        **named,
    )
    ours = dict.fromkeys(_CAPABILITIES, True) | {name: name in wanted for name in _OPTIONAL}
    capabilities = [{"capability": name, "state": state} for name, state in ours.items()]
    await session.ask("migrate-set-capabilities", capabilities=capabilities)
    await session.ask("migrate-set-parameters", tls_creds=_KEY)


async def _forget_key(session: Monitor, home: Home) -> None:
    """Leave nothing of a key in QEMU and on the disk; harmless when there is none."""
    credentials.forget(home)
    with contextlib.suppress(CommandRefused):  # it had none
        await session.ask("migrate-set-parameters", tls_creds="")
        await session.ask("object-del", id=_KEY)
