"""Moving a running guest's memory from one QEMU to another, encrypted, both sides known.

The guest runs on meanwhile. The source keeps it until the target has said that it has everything
("return-path"), so a transfer that breaks at any earlier moment leaves it running where it was.
"""

import asyncio
import contextlib
from pathlib import Path

from common.errors import Conflict, NodeFailure
from common.noderpc.instances import GuestState
from noded.hypervisor.interface import Tell
from noded.hypervisor.kvm.credentials import lent
from noded.hypervisor.kvm.home import Home, Record
from noded.hypervisor.kvm.monitor import CommandRefused, Monitor, monitor
from noded.hypervisor.kvm.parse import Progress, Transfer, parse_progress, parse_state

LOOK_EVERY_S = 0.2
STALLED_AFTER_S = 60.0  # without a byte sent: the network is gone and nobody told us
END_S = 30.0  # for a cancelled transfer to end

_CREDENTIALS = "migration-tls"
# The guest is slowed down when it changes memory faster than the network carries it.
_CAPABILITIES = {"return-path": True, "auto-converge": True}


async def listen(home: Home, name: str, identity: Path, address: str) -> int:
    """Have a fresh QEMU wait for memory; return its TCP port on ``address``.

    Raises:
        NodeFailure: the address is not this node's, or its certificate is unusable.
    """
    async with monitor(home.qmp_socket, name) as session:
        await _prepare(session, home, identity, endpoint="server")
        host = f"[{address}]" if ":" in address else address
        await session.ask("migrate-incoming", uri=f"tcp:{host}:0")
    return await listening_port(home, name)


async def listening_port(home: Home, name: str) -> int:
    """Return the port on which a QEMU waits for memory, or 0 if it does not."""
    async with monitor(home.qmp_socket, name) as session:
        return (await progress_of(session)).port


async def send(
    home: Home, record: Record, identity: Path, *, host: str, peer: str, port: int, tell: Tell
) -> None:
    """Begin a transfer unless one is under way or done; return when the memory has left.

    Raises:
        NodeFailure: it failed; the guest runs on here.
    """
    name = record.name
    async with monitor(home.qmp_socket, name) as session:  # others wait, so what is asked holds
        if parse_state(await session.ask("query-status")) is GuestState.MIGRATED:
            return
        if (await progress_of(session)).state is not Transfer.ACTIVE:
            await _prepare(session, home, identity, endpoint="client")
            await session.ask(
                "migrate-set-parameters",
                tls_hostname=peer,
                max_bandwidth=record.migration_bandwidth << 20,
                downtime_limit=record.migration_downtime,
            )
            uri = f"tcp:[{host}]:{port}" if ":" in host else f"tcp:{host}:{port}"
            await session.ask("migrate", uri=uri)
    try:
        end = await _follow(home, name, tell)
    except asyncio.CancelledError:
        # If the memory has left by now, the guest's place is for others to sort out.
        with contextlib.suppress(Conflict, NodeFailure):
            await cancel(home, name)
        raise
    if end.state is not Transfer.COMPLETED:
        await _ensure_resumed(home, name)
        reason = end.error or "it was cancelled"
        raise NodeFailure(
            f"Moving {name} to {peer} failed, and it goes on here: {reason}.",
            instance=name,
            peer=peer,
        )


async def cancel(home: Home, name: str) -> None:
    """End a transfer that goes on, and have the guest run here.

    Raises:
        Conflict: its memory has left.
        NodeFailure: QEMU does not end the transfer.
    """
    async with monitor(home.qmp_socket, name) as session:
        if (await progress_of(session)).state is Transfer.ACTIVE:
            await session.ask("migrate_cancel")
    try:
        async with asyncio.timeout(END_S):
            while (await _look(home, name)).state is Transfer.ACTIVE:  # noqa: ASYNC110 -- asks
                await asyncio.sleep(LOOK_EVERY_S)
    except TimeoutError as error:
        raise NodeFailure(
            f"The QEMU of {name} was told to end its migration and does not.",
            instance=name,
        ) from error
    await _ensure_resumed(home, name)


async def progress_of(session: Monitor) -> Progress:
    """Ask QEMU how its transfer is going."""
    return parse_progress(await session.ask("query-migrate"))


async def _follow(home: Home, name: str, tell: Tell) -> Progress:
    """Watch a transfer until it has ended; cancel one that stands still."""
    loop = asyncio.get_running_loop()
    sent, moved_at = -1, loop.time()
    while True:
        # A session for each look: others, who may want to cancel, get their turn between.
        now = await _look(home, name)
        if now.state is not Transfer.ACTIVE:
            return now
        if now.sent != sent:
            sent, moved_at = now.sent, loop.time()
        elif loop.time() - moved_at > STALLED_AFTER_S:
            await cancel(home, name)
            raise NodeFailure(
                f"Moving {name} stood still for {STALLED_AFTER_S:g} s and was cancelled; "
                "it goes on here. Check the network between the nodes.",
                instance=name,
            )
        tell(now.sentence, now.share)
        await asyncio.sleep(LOOK_EVERY_S)


async def _look(home: Home, name: str) -> Progress:
    async with monitor(home.qmp_socket, name) as session:
        return await progress_of(session)


async def _ensure_resumed(home: Home, name: str) -> None:
    """QEMU resumes a guest whose transfer failed; make sure, in case that failed too."""
    async with monitor(home.qmp_socket, name) as session:
        state = parse_state(await session.ask("query-status"))
        if state is GuestState.MIGRATED:
            raise Conflict(
                f"The memory of {name} has left this node; it runs on the target.",
                instance=name,
            )
        if state is GuestState.PAUSED:
            await session.ask("cont")


async def _prepare(session: Monitor, home: Home, identity: Path, *, endpoint: str) -> None:
    """Have QEMU use this node's certificate and ask the other side for one of this cluster."""
    with contextlib.suppress(CommandRefused):  # left by an earlier attempt, or not
        await session.ask("object-del", id=_CREDENTIALS)
    with lent(home, identity, endpoint) as directory:
        await session.ask(
            "object-add",
            qom_type="tls-creds-x509",
            id=_CREDENTIALS,
            dir=str(directory),
            endpoint=endpoint,
            verify_peer=True,
        )
    capabilities = [{"capability": name, "state": on} for name, on in _CAPABILITIES.items()]
    await session.ask("migrate-set-capabilities", capabilities=capabilities)
    await session.ask("migrate-set-parameters", tls_creds=_CREDENTIALS)
