"""Sessions through which QEMU hears when its guest waits for memory of which the line was cut.

A device that touches such memory stops QEMU's main loop, and with it all of QMP but two commands,
which are obeyed out of band in a session that was open before. One is held for each guest that
lacks memory, together with spare connections that QEMU was given while it could still take them,
and is given again whenever it can.
What comes on another line is passed on there; it is encrypted, and noded has no part in it.
"""

import asyncio
import socket
from contextlib import AsyncExitStack, ExitStack, suppress

from common.errors import NodeFailure
from common.names import InstanceId
from common.tasks import Background
from noded.hypervisor.kvm.home import Home
from noded.hypervisor.kvm.monitor import CommandRefused, Monitor, monitor

SPARES = 4  # lines that can be cut while QEMU does not get to its main loop
LOOK_EVERY_S = 1.0
CHUNK = 1 << 20


class Lifeline:
    """Of one guest; held by ``Lifelines``."""

    def __init__(self, session: Monitor) -> None:
        self._session = session
        self._spares: dict[str, socket.socket] = {}  # our ends, by what QEMU calls its own
        self._given = 0

    @property
    def lacks_spares(self) -> bool:
        """Whether some were used up."""
        return len(self._spares) < SPARES

    async def refill(self) -> None:
        """Give QEMU all the spare connections that it lacks; it has to answer.

        One at a time: it takes each for the descriptor that it was handed last.

        Raises:
            NodeFailure: it does not answer.
        """
        while self.lacks_spares:
            name = f"spare{self._given}"
            with ExitStack() as undone:  # also when cancelled
                ours, qemus = socket.socketpair()
                undone.enter_context(ours)
                with qemus:
                    await self._session.lend(name, qemus.fileno())  # it waits for what comes there
                undone.pop_all()
            ours.settimeout(0)
            self._spares[name], self._given = ours, self._given + 1

    async def cut(self) -> None:
        """Have QEMU let go of its line; harmless if that is cut, or there is none."""
        with suppress(CommandRefused):
            await self._session.ask_at_once("migrate-pause")

    async def mend(self) -> socket.socket:
        """Have QEMU go on with a spare connection; return our end of it.

        Raises:
            NodeFailure: there is none, or QEMU refuses, or is silent.
        """
        if not self._spares:
            raise NodeFailure("QEMU has no line left that it could go on with, and takes none now.")
        name = next(iter(self._spares))
        ours = self._spares.pop(name)
        with ExitStack() as undone:
            undone.enter_context(ours)
            await self._session.ask_at_once("migrate-recover", uri=f"fd:{name}")
            undone.pop_all()
        return ours

    def close(self) -> None:
        for spare in self._spares.values():
            spare.close()


class Lifelines:
    """Of all guests of a node that lack memory."""

    def __init__(self, background: Background) -> None:
        self._background = background
        self._held: dict[InstanceId, Lifeline] = {}

    async def hold(self, home: Home, name: str) -> Lifeline:
        """Return a guest's lifeline, until it has all its memory or has ended.

        Raises:
            NodeFailure: there was none, and its QEMU does not answer.
        """
        if held := self._held.get(home.instance):
            return held
        async with AsyncExitStack() as stack:
            session = await stack.enter_async_context(monitor(home.news_socket, name))
            lifeline = Lifeline(session)
            stack.callback(lifeline.close)
            await lifeline.refill()
            self._held[home.instance] = lifeline
            stack.callback(self._held.pop, home.instance)
            holding = _holding(home, name, lifeline, stack.pop_all())
            self._background.start(holding, name=f"the lifeline of {name}")
        return lifeline

    async def take_rest(self, home: Home, name: str, _: str, line: socket.socket) -> None:
        """Have a guest's QEMU go on with what comes on ``line``.

        Raises:
            NodeFailure: it does not.
        """
        try:
            spare = await (await self.hold(home, name)).mend()
        except NodeFailure:
            line.close()
            raise
        self._background.start(_join(line, spare), name=f"memory for {name}")


async def _holding(home: Home, name: str, lifeline: Lifeline, held: AsyncExitStack) -> None:
    async with held:
        while home.lacks_memory and home.runs:
            if lifeline.lacks_spares:
                with suppress(NodeFailure):
                    await _refill_if_it_answers(home, name, lifeline)
            await asyncio.sleep(LOOK_EVERY_S)


async def _refill_if_it_answers(home: Home, name: str, lifeline: Lifeline) -> None:
    """Give a guest's QEMU spare connections, unless it waits for memory.

    Then what it is told in the lifeline itself would pile up until QEMU reads nothing there any
    more, not even what it obeys at once. To begin another session takes its main loop.
    """
    async with monitor(home.qmp_socket, name, patience_s=LOOK_EVERY_S):
        await lifeline.refill()


async def _join(one: socket.socket, other: socket.socket) -> None:
    """Pass on what comes on either of two connections, until one ends; then both do."""
    with one, other:
        ways = [asyncio.ensure_future(_pass_on(*way)) for way in ((one, other), (other, one))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.wait(ways)


async def _pass_on(source: socket.socket, target: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    with suppress(OSError):
        while part := await loop.sock_recv(source, CHUNK):
            await loop.sock_sendall(target, part)
