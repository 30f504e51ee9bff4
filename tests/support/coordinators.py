"""Coordinators of a simulated cluster: real masters, with the network as all they touch."""

import asyncio
from collections.abc import Awaitable
from random import Random
from typing import Any

from common.errors import GntError
from common.luxi.answers import Request
from common.model.node import Node
from common.names import Epoch, GroupId, NodeId, NodeName
from coordinator.master.master import Master, Outside
from coordinator.master.reign import reign
from coordinator.nodes.calls import Nodes
from coordinator.quorum.question import Mode, Word
from tests.support.machine import Machine
from tests.support.network import LOOPBACK, Line, Network, sign_of_life, stranger
from tests.support.process import Process


class Coordinator:
    """One process ``gantry-coordinator`` on one machine."""

    def __init__(self, machine: Machine, network: Network, random: Random) -> None:
        self.machine = machine
        self.master: Master | None = None
        self.ended_by: GntError | None = None  # why it stopped by itself
        self._line = Line(network, machine)
        self._outside = Outside(
            Nodes(self._line, Epoch(0), Random(random.getrandbits(64))),
            stranger(network, machine),
            machine.now,
            random,
            machine.paths.luxi_socket.parent,
            is_alive=sign_of_life(network, machine),
        )
        shown = machine.shows()
        name = shown.peer.node if shown else NodeName(machine.name)  # it may have been renamed
        uuid = shown.uuid if shown else NodeId("")
        self._me = Node(uuid=uuid, name=name, primary_ip=LOOPBACK, group=GroupId(""))
        self._process = Process()
        self._task: asyncio.Task[None] | None = None
        self.ended = asyncio.Event()
        self.is_serving = False  # else it is being confirmed, or in doubt
        self.listens = False  # from its first commit on; before, nobody can ask it anything
        self.replaced = asyncio.Event()  # set when ``master`` has a successor, or none

    @property
    def name(self) -> str:
        return self.machine.name

    @property
    def running(self) -> Master:
        """The master that it is; another one after each time it was in doubt."""
        assert self.master is not None
        return self.master

    @property
    def is_alive(self) -> bool:
        return self._task is not None and not self._task.done()

    async def start(self, mode: Mode = Mode.START, word: Word = Word.NONE) -> None:
        """Become master and take up the jobs; return when that is done.

        Raises:
            GntError: it does not become master, and why.
        """
        ready = asyncio.Event()
        self._task = self._process.start(self._reign(mode, word, ready), name=f"master {self.name}")
        waiting = asyncio.ensure_future(ready.wait())
        await asyncio.wait({self._task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self.ended_by is not None:
            raise self.ended_by

    async def take_over(self, word: Word = Word.NONE) -> Word:
        """Do what ``gnt-cluster master-failover`` does before it starts the daemon.

        Returns:
            The word that the daemon needs, too: none, if none was needed here.
        """
        master = await Master.confirm(self._me, self._outside, Mode.TAKE_OVER, word)
        await master.take_over()
        return Word.NO_VOTING if master.confirmed.won.overridden else Word.NONE

    def die(self) -> None:
        """Do nothing more from this moment on; ``kill`` clears away what is left."""
        self._line.cut_off()

    async def kill(self) -> None:
        """End it at once."""
        self.die()
        await self._process.close()

    def suspend(self) -> None:
        """Have it do nothing, until it is resumed or killed."""
        self._process.suspend()

    def resume(self) -> None:
        self._process.resume()

    async def luxi(self, method: str, *args: Any) -> Any:
        """Ask it as a client does.

        Raises:
            GntError: as it answered.
            ConnectionRefusedError: it does not listen.
            ConnectionResetError: it was killed meanwhile.
        """
        if not self.listens:
            raise ConnectionRefusedError(f"the coordinator on {self.name} does not listen")
        request = Request(method=method, args=tuple(args))
        asking = self._process.start(_outcome(self.running.luxi(request)), name=method)
        await asyncio.wait([asking])
        if asking.cancelled():
            raise ConnectionResetError(f"the coordinator on {self.name} has ended")
        result, error = asking.result()
        if error is not None:
            raise error
        return result

    def _begin_to_listen(self, ready: asyncio.Event) -> None:
        self.listens = True
        ready.set()

    async def _reign(self, mode: Mode, word: Word, ready: asyncio.Event) -> None:
        async def confirm(mode: Mode, word: Word, above: Epoch) -> Master:
            return await Master.confirm(self._me, self._outside, mode, word, above=above)

        async def serve(master: Master) -> None:
            self.master = master
            self.replaced.set()
            self.replaced = asyncio.Event()
            self.is_serving = True
            try:
                await master.run(lambda: self._begin_to_listen(ready))
            finally:
                self.is_serving = self.listens = False

        try:
            await reign(self._me.name, confirm, serve, mode, word)
        except* GntError as group:
            self.ended_by = _first(group)
        finally:
            self.ended.set()
            self.replaced.set()


async def _outcome(asked: Awaitable[Any]) -> tuple[Any, GntError | None]:
    """Keep an error for whoever asked; it is no failure of the process."""
    try:
        return await asked, None
    except GntError as error:
        return None, error


def _first(group: BaseExceptionGroup[Any]) -> GntError:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
