"""A script of root's that is run for each nic of a guest that starts: ``kvm-ifup-custom``.

The tap is there by then, and plugged in as its nic says; what else it needs on this node is the
script's to do. It is called as Ganeti calls its own.
"""

import asyncio
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from common.errors import NodeFailure
from common.noderpc.instances import GuestSpec
from common.noderpc.network import ToldOfNic
from noded.system.execute import execute
from noded.system.roots_scripts import check_program, check_way
from noded.system.threads import in_thread

ALL_S = 15.0  # for all nics of a guest


class Ifup:
    """Runs ``script``, if there is one that can be run."""

    def __init__(self, script: Path) -> None:
        self._script = script

    async def check(self) -> None:
        """Refuse a script that others than root could have changed.

        Raises:
            NodeFailure: says what is theirs.
        """
        await in_thread(_find, self._script)

    async def run(self, guest: GuestSpec, taps: Mapping[int, str]) -> None:
        """Have the script set up taps.

        Args:
            guest: whose.
            taps: by the index of their nic.

        Raises:
            NodeFailure: it has failed, takes too long, or others than root could have changed it.
        """
        if not taps:
            return
        script = await in_thread(_find, self._script)
        if script is None:
            return
        end = asyncio.get_running_loop().time() + ALL_S
        for index, tap in taps.items():
            left_s = max(0.0, end - asyncio.get_running_loop().time())
            told = dict(environment(guest, index, tap))
            await execute(script, tap, timeout_s=left_s, environment=told)


def environment(guest: GuestSpec, index: int, tap: str) -> Iterator[tuple[str, str]]:
    """Yield what the script is told of a nic, by the names that Ganeti has for it."""
    nic = guest.nics[index]
    told = guest.told_of_nics.get(nic.id, ToldOfNic())
    yield from (("INSTANCE", guest.name), ("TAGS", guest.tags))
    yield from (("INTERFACE", tap), ("INTERFACE_INDEX", str(index)), ("INTERFACE_UUID", nic.id))
    yield from (("MAC", nic.mac), ("MODE", nic.mode))
    if told.name:
        yield "INTERFACE_NAME", told.name
    if nic.ip:
        yield "IP", nic.ip
    if nic.link:
        yield "LINK", nic.link
    if nic.vlan:
        yield "VLAN", nic.vlan
    if nic.mode == "bridged":
        yield "BRIDGE", nic.link
    yield from told.network.items()


def _find(script: Path) -> str | None:
    """Return where the script really is, if there is one that can be run.

    Raises:
        NodeFailure: it cannot be looked at, or others could have changed it.
    """
    try:
        real = Path(os.path.realpath(script, strict=True))
        mode = real.stat().st_mode
        if not mode & 0o111:
            return None
        check_program(real, mode)
        check_way(real)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NodeFailure(f"Cannot run {script}: {error.strerror}.", path=str(script)) from error
    return str(real)
