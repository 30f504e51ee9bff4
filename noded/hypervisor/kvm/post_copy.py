"""The rest of a guest's memory, which follows when it runs on its target already: at the source.

Nothing can be undone any more: half of its memory is on either node. When their line breaks, both
QEMUs wait ("postcopy-paused"), the guest for what it lacks, until they are given another: the
target by a lifeline (``lifelines``).
"""

import asyncio
import contextlib
import socket

from common.errors import Conflict, NodeFailure
from common.noderpc.instances import Rest
from noded.hypervisor.kvm.credentials import give_key
from noded.hypervisor.kvm.home import Home
from noded.hypervisor.kvm.monitor import CommandRefused, Monitor, monitor
from noded.hypervisor.kvm.ways import LINE, progress_of

PAUSED_S = 10.0  # for QEMU to notice that its line was cut
LOOK_EVERY_S = 0.1


async def ensure_cut(home: Home, name: str) -> None:
    """Have QEMU wait for another line: the other side has lost this one.

    Raises:
        Conflict: nothing is missing.
        NodeFailure: it does not let go of the line, or is silent.
    """
    deadline = asyncio.get_running_loop().time() + PAUSED_S
    while True:
        async with monitor(home.qmp_socket, name) as session:
            match (await progress_of(session)).rest:
                case Rest.CUT:
                    return
                case Rest.NONE:
                    raise Conflict(f"All memory of {name} has moved.", instance=name)
                case Rest.COMES:
                    await _cut(session)
        if asyncio.get_running_loop().time() > deadline:
            raise NodeFailure(f"The QEMU of {name} does not let go of a line that was cut.")
        await asyncio.sleep(LOOK_EVERY_S)


async def send_rest(home: Home, name: str, secret: str, line: socket.socket) -> None:
    """Have the source's QEMU go on with another connection; our copy of that is closed.

    Raises:
        NodeFailure: QEMU refuses or is silent.
    """
    with line:
        async with monitor(home.qmp_socket, name) as session:
            await give_key(session, home, secret, endpoint="client")
            await session.give(LINE, line)
            await session.ask("migrate", uri=f"fd:{LINE}", resume=True)


async def _cut(session: Monitor) -> None:
    with contextlib.suppress(CommandRefused):  # it has found out by itself, or is between two lines
        await session.ask("migrate-pause")
