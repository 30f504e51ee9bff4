"""The agents in all guests of a node: what they told, and what they are asked to do.

Each is asked by one at a time. Whoever lists guests is told what an agent said some seconds ago,
and waits for none: a guest may have no agent, or one that does not answer.
"""

import asyncio
import contextlib
import logging
from dataclasses import dataclass

from common.errors import InvalidRequest, NodeFailure
from common.names import InstanceId
from common.noderpc.guest_agent import Interface
from common.tasks import Background
from noded.hypervisor.kvm.agent_answers import parse_interfaces
from noded.hypervisor.kvm.agent_line import AgentLine, AgentRefused, AgentSilent, agent
from noded.hypervisor.kvm.home import Home
from noded.system.patience import without_bounds
from noded.system.turns import Turns

ASK_EVERY_S = 10.0
FIRST_S = 0.5  # of patience of who lists guests with one that was never asked
FORGET_S = 60.0  # after which what a silent agent has told is not true any more
FREEZE_S = 30.0  # for a guest to write all that it has not written yet
THAW_S = 10.0
THAW_EVERY_S = 2.0

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Known:
    """``told_s`` is when its interfaces were told, ``task`` who asks for them, or has asked."""

    task: asyncio.Task[None]
    asked_s: float
    told_s: float = 0.0
    interfaces: tuple[Interface, ...] | None = None


class Agents:
    """Asks those of one node."""

    def __init__(self, background: Background) -> None:
        self._background = background
        self._turns = Turns()
        self._known: dict[InstanceId, _Known] = {}
        self._thawing: dict[InstanceId, asyncio.Task[None]] = {}

    async def interfaces(self, home: Home, name: str) -> tuple[Interface, ...] | None:
        """Return the interfaces that a running guest told of lately; None if it has not."""
        now = _now()
        known = self._known.get(home.instance)
        if known is None:
            known = self._known[home.instance] = _Known(self._begin_asking(home, name), now)
            await asyncio.wait([known.task], timeout=FIRST_S)
        elif known.task.done() and now - known.asked_s >= ASK_EVERY_S:
            known.task, known.asked_s = self._begin_asking(home, name), now
        return known.interfaces

    def forget(self, instance: InstanceId) -> None:
        """Forget what was told by the agent of a guest that is over."""
        if known := self._known.pop(instance, None):
            known.task.cancel()

    async def power_off(self, home: Home, name: str) -> None:
        """Have a guest power off in good order, if it has an agent that does so."""
        with contextlib.suppress(AgentSilent):
            async with self._turns.of(home.instance), agent(home.agent_socket, name) as line:
                await line.tell("guest-shutdown", mode="powerdown")

    async def freeze(self, home: Home, name: str) -> int:
        """Have a guest write all it has to its disks, and nothing more until it is thawed.

        It is thawed when this fails, and by the next noded if this one dies.

        Returns:
            How many file systems that are.

        Raises:
            NodeFailure: there is no agent, it refuses, or it takes too long.
        """
        async with self._turns.of(home.instance), agent(home.agent_socket, name) as line:
            before = home.is_frozen
            home.freeze()
            try:
                count = await line.ask("guest-fsfreeze-freeze", patience_s=FREEZE_S)
                if not isinstance(count, int) or isinstance(count, bool) or count < 0:
                    raise AgentSilent(f"The agent in {name} does not say what it has frozen.")
            except AgentRefused:
                if before:  # as one refuses that is frozen
                    self.thaw_at_last(home, name)
                else:
                    await self._thaw_who_refused(line, home, name)
                raise
            except (NodeFailure, asyncio.CancelledError):
                self.thaw_at_last(home, name)
                raise
        return count

    async def thaw(self, home: Home, name: str) -> None:
        """Have a guest write again that was frozen; any other is left alone.

        Raises:
            NodeFailure: its agent does not say that it does.
        """
        async with self._turns.of(home.instance):
            if home.is_frozen:
                async with agent(home.agent_socket, name, patience_s=THAW_S) as line:
                    await line.ask("guest-fsfreeze-thaw", patience_s=THAW_S)
                home.thaw()

    def thaw_at_last(self, home: Home, name: str) -> None:
        """Thaw a guest however long that takes, as long as it lives."""
        thawing = self._thawing.get(home.instance)
        if thawing is None or thawing.done():
            with without_bounds():
                work = self._keep_thawing(home, name)
                self._thawing[home.instance] = self._background.start(work, name=f"thaw {name}")

    async def _thaw_who_refused(self, line: AgentLine, home: Home, name: str) -> None:
        """Thaw what may be frozen in part; an agent that refuses that too has frozen nothing."""
        try:
            await line.ask("guest-fsfreeze-thaw", patience_s=THAW_S)
        except AgentRefused:
            home.thaw()
        except AgentSilent:
            self.thaw_at_last(home, name)
        except asyncio.CancelledError:
            self.thaw_at_last(home, name)
            raise
        else:
            home.thaw()

    async def _keep_thawing(self, home: Home, name: str) -> None:
        while home.is_frozen and home.runs:
            try:
                await self.thaw(home, name)
            except NodeFailure as error:
                log.warning("%s is still frozen: %s", name, error)
                await asyncio.sleep(THAW_EVERY_S)
        self._thawing.pop(home.instance, None)

    def _begin_asking(self, home: Home, name: str) -> asyncio.Task[None]:
        with without_bounds():
            return self._background.start(self._ask(home, name), name=f"ask the agent of {name}")

    async def _ask(self, home: Home, name: str) -> None:
        told = None
        if not home.is_frozen:  # then it may not be asked
            with contextlib.suppress(NodeFailure, InvalidRequest):
                async with self._turns.of(home.instance), agent(home.agent_socket, name) as line:
                    told = parse_interfaces(await line.ask("guest-network-get-interfaces"))
        if known := self._known.get(home.instance):
            if told is not None:
                known.interfaces, known.told_s = told, _now()
            elif _now() - known.told_s >= FORGET_S:
                known.interfaces = None


def _now() -> float:
    return asyncio.get_running_loop().time()
