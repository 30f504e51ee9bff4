"""Open vSwitch, and VLANs of the kernel's bridges, through their own programs."""

import shutil
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from common.errors import NodeFailure
from common.noderpc.network import NicSpec
from common.vlans import parse_vlans
from noded.network import switch_commands
from noded.system.execute import ENVIRONMENT, CommandFailed, Finished, execute

PATIENCE_S = 15.0
_NOT_THERE = 2  # status of br-exists

Run = Callable[..., Coroutine[Any, Any, Finished]]


class Switches:
    """The switches of a node. They remember ports that are gone, so each is taken out."""

    def __init__(self, run: Run = execute, *, is_installed: bool | None = None) -> None:
        self._run = run
        self._is_installed = is_installed

    async def check(self, name: str) -> None:
        """Refuse a switch that this node does not have.

        Raises:
            NodeFailure: says whether Open vSwitch is there at all.
        """
        if not self._has_programs():
            raise NodeFailure(
                f"The nic is to be plugged into the switch {name!r}, and this node has no Open "
                "vSwitch; install openvswitch-switch.",
                link=name,
            )
        try:
            await self._run(*switch_commands.exists(name), timeout_s=PATIENCE_S)
        except CommandFailed as error:
            if error.detail.get("status") != _NOT_THERE:
                raise NodeFailure(f"Open vSwitch does not answer: {error.message}") from error
            raise NodeFailure(
                f"The switch {name!r} does not exist on this node; make it with “ovs-vsctl "
                f"add-br {name}”, or give the nic another link.",
                link=name,
            ) from error

    async def names(self) -> frozenset[str]:
        """Return the switches of this node; none where there is no Open vSwitch."""
        if not self._has_programs():
            return frozenset()
        try:
            finished = await self._run(*switch_commands.switches(), timeout_s=PATIENCE_S)
        except CommandFailed:
            return frozenset()
        return frozenset(finished.stdout.decode(errors="replace").split())

    async def plug(self, tap: str, nic: NicSpec) -> None:
        """Have a tap, which exists, in its nic's switch and VLANs; it may be there already.

        Raises:
            NodeFailure: there is no such switch, or it refuses.
        """
        await self.check(nic.link)
        is_there = await self._switch_of(tap) == nic.link
        vlans = parse_vlans(nic.vlan)
        try:
            command = switch_commands.plug(tap, nic.link, vlans, is_there=is_there)
            await self._run(*command, timeout_s=PATIENCE_S)
        except CommandFailed as error:
            raise NodeFailure(f"Cannot plug {tap} into {nic.link}: {error.message}") from error

    async def unplug(self, taps: Iterable[str]) -> None:
        """Take taps out of whichever switches they are in.

        Raises:
            NodeFailure: Open vSwitch refuses, or does not answer.
        """
        gone = tuple(taps)
        if not gone or not self._has_programs():
            return
        try:
            await self._run(*switch_commands.unplug(gone), timeout_s=PATIENCE_S)
        except CommandFailed as error:
            raise NodeFailure(f"Cannot take taps out of Open vSwitch: {error.message}") from error

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

    async def _switch_of(self, tap: str) -> str:
        try:
            finished = await self._run(*switch_commands.switch_of(tap), timeout_s=PATIENCE_S)
        except CommandFailed:
            return ""
        return finished.stdout.decode(errors="replace").strip()

    def _has_programs(self) -> bool:
        if self._is_installed is None:
            return shutil.which("ovs-vsctl", path=ENVIRONMENT["PATH"]) is not None
        return self._is_installed
