"""Open vSwitch, and VLANs of the kernel's bridges, through their own programs."""

import logging
import shutil
import signal
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from pathlib import Path
from typing import Any

from common.errors import NodeFailure
from common.noderpc.network import NicSpec
from common.vlans import parse_vlans
from noded.network import switch_commands
from noded.network.switch_parse import Seen, read_problem, read_switches
from noded.network.switch_plan import left_over, place
from noded.system.execute import ENVIRONMENT, CommandFailed, Finished, execute

PATIENCE_S = 15.0  # of bridge(8)
GRACE_S = 5.0  # for a program of Open vSwitch to end when its own time is over
_RUN_DIRECTORY = "/run/openvswitch"

log = logging.getLogger(__name__)

Run = Callable[..., Coroutine[Any, Any, Finished]]


class Switches:
    """The switches of a node. They remember ports that are gone, so each is taken out."""

    def __init__(self, run: Run = execute, *, is_installed: bool | None = None) -> None:
        self._run = run
        self._is_installed = is_installed

    def may_run(self) -> bool:
        """Tell without starting a program whether it has run since this node was booted."""
        if self._is_installed is None:
            return Path(ENVIRONMENT.get("OVS_RUNDIR", _RUN_DIRECTORY), "db.sock").exists()
        return self._is_installed

    async def check(self, nics: Iterable[NicSpec]) -> None:
        """Refuse nics whose switch or VLANs this node does not have; others are not looked at.

        Raises:
            NodeFailure: says whether Open vSwitch is there at all, and answers.
        """
        switched = [nic for nic in nics if nic.mode == "openvswitch"]
        if not switched:
            return
        if not self._has_programs():
            link = switched[0].link
            raise NodeFailure(
                f"The nic is to be plugged into the switch {link!r}, and this node has no Open "
                "vSwitch; install openvswitch-switch.",
                link=link,
            )
        seen = await self._look()
        for nic in switched:
            place(seen, nic)

    async def names(self) -> frozenset[str]:
        """Return the switches of this node; none where Open vSwitch is not there, or silent."""
        return frozenset((await self._look_if_any()).switches)

    async def plugged_in(self) -> Mapping[str, str]:
        """Return in which switch each device is; none where Open vSwitch is silent."""
        return {port.name: port.switch for port in (await self._look_if_any()).ports.values()}

    async def plug(self, tap: str, nic: NicSpec) -> None:
        """Have a tap, which exists, in its nic's switch and VLANs; it may be there already.

        Raises:
            NodeFailure: there is no such switch, or it refuses; the tap is in none then, unless
                it was in it already.
        """
        seen = await self._look()
        bridge, vlans = place(seen, nic)
        port = seen.ports.get(tap)
        is_there = port is not None and port.bridge == bridge
        try:
            await self._tell(switch_commands.plug(tap, nic.id, bridge, vlans, is_there=is_there))
            problem = read_problem(await self._tell(switch_commands.problem(tap)))
        except NodeFailure as error:
            problem = error.message.rstrip(".")
        if problem:
            if not is_there:
                await self._forget((tap,))
            raise NodeFailure(f"Cannot plug {tap} into {nic.link}: {problem}.", tap=tap)

    async def unplug(self, taps: Collection[str]) -> None:
        """Take taps, which stay, out of whichever switches they are in.

        Raises:
            NodeFailure: Open vSwitch refuses, or does not answer.
        """
        if not taps or not self.may_run():
            return
        seen = await self._look()
        if plugged_in := tuple(tap for tap in taps if tap in seen.ports):
            await self._tell(switch_commands.unplug(plugged_in, are_gone=False))

    async def forget(
        self, taps: Collection[str], links: Collection[str], devices: Collection[str]
    ) -> None:
        """Take out taps that are gone: those named, and others that it was not told of in time.

        What cannot be taken out now, as Open vSwitch is down, is left to the next time.

        Args:
            taps: which have just been deleted.
            links: see ``left_over``.
            devices: likewise.
        """
        seen = await self._look_if_any()
        gone = {tap for tap in taps if tap in seen.ports} | {*left_over(seen, links, devices)}
        if gone:
            await self._forget(tuple(sorted(gone)))

    async def tag(self, tap: str, nic: NicSpec) -> None:
        """Have a port of a bridge, which filters, in the VLANs of its nic alone.

        Raises:
            NodeFailure: the kernel refuses.
        """
        text = switch_commands.bridge_vlans(tap, parse_vlans(nic.vlan))
        try:
            await self._run("bridge", "-batch", "-", stdin=text.encode(), timeout_s=PATIENCE_S)
        except CommandFailed as error:
            raise NodeFailure(
                f"Cannot put {tap} into the VLANs {nic.vlan} of {nic.link}: {error.message}"
            ) from error

    async def _look(self) -> Seen:
        return read_switches(await self._tell(switch_commands.look()))

    async def _look_if_any(self) -> Seen:
        if not self.may_run():
            return Seen({}, {})
        try:
            return await self._look()
        except NodeFailure as error:
            log.warning("cannot look at the switches of this node: %s", error.message)
            return Seen({}, {})

    async def _forget(self, taps: tuple[str, ...]) -> None:
        try:
            await self._tell(switch_commands.unplug(taps, are_gone=True))
        except NodeFailure as error:
            log.warning("ports %s are left over in a switch: %s", " ".join(taps), error.message)

    async def _tell(self, command: tuple[str, ...]) -> str:
        """Run a program of Open vSwitch; return what it prints.

        Raises:
            NodeFailure: it failed, or waited in vain.
        """
        try:
            limit_s = switch_commands.LIMIT_S + GRACE_S
            finished = await self._run(*command, timeout_s=limit_s)
        except CommandFailed as error:
            if error.detail.get("status") not in (None, -signal.SIGALRM):
                raise NodeFailure(f"Open vSwitch does not do it: {error.message}") from error
            raise NodeFailure(
                f"Open vSwitch has not done it within {switch_commands.LIMIT_S} s; “systemctl "
                "status ovsdb-server ovs-vswitchd” tells whether it runs on this node."
            ) from error
        return finished.stdout.decode(errors="replace")

    def _has_programs(self) -> bool:
        if self._is_installed is None:
            return shutil.which("ovs-vsctl", path=ENVIRONMENT["PATH"]) is not None
        return self._is_installed
