"""Debian's Open vSwitch, with a database of its own, in the network of whoever starts it."""

import contextlib
import itertools
import os
import select
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest

from common.execute import ENVIRONMENT, execute
from noded.network import switch_commands
from noded.network.linux import LinuxNetwork
from noded.network.netlink import open_netlink
from noded.system.threads import in_thread
from tests.support.namespace import in_new_network

UNPACKED = Path(".cache/openvswitch").absolute()
PROGRAMS = ("usr/bin", "usr/sbin", "usr/lib/openvswitch-switch")
DATABASE, SWITCH = "ovsdb-server", "ovs-vswitchd"
START_S = 60.0
_EMPTY: list[bytes] = []  # the database with which every test begins, once it was made


class OpenVSwitch:
    """Its daemons can be killed, and started again on the same database.

    Args:
        home: an empty directory, for the database, sockets and logs; its path is short.
        datapath: ``netdev``, which is in user space, or ``system``, which is the kernel's.
    """

    def __init__(self, home: Path, datapath: str) -> None:
        self.home, self.datapath = home, datapath

    async def start(self, daemon: str) -> None:
        """Return when it has taken up its work."""
        words = ("--detach", "--no-chdir", f"--pidfile={self._pid(daemon)}", "-vconsole:off")
        socket = f"unix:{self.home}/db.sock"
        last = (f"{self.home}/conf.db", f"--remote=p{socket}") if daemon == DATABASE else (socket,)
        await execute(daemon, *words, "--log-file", *last, timeout_s=START_S)

    def kill(self, daemon: str) -> None:
        """Return when it is gone, as by kill -9."""
        if not (file := self._pid(daemon)).exists():
            return
        with contextlib.suppress(ProcessLookupError):
            process = os.pidfd_open(int(file.read_text()))
            try:
                signal.pidfd_send_signal(process, signal.SIGKILL)
                select.select([process], [], [])
            finally:
                os.close(process)
        file.unlink()

    async def tell(self, *words: str) -> str:
        """Run ovs-vsctl; return what it prints."""
        finished = await execute("ovs-vsctl", "--timeout=30", *words, timeout_s=START_S)
        return finished.stdout.decode().strip()

    async def make_database(self) -> None:
        """Have the database run, with nothing in it. It is made once: that takes two programs."""
        file = self.home / "conf.db"
        if _EMPTY:
            file.write_bytes(_EMPTY[0])
            await self.start(DATABASE)
            return
        schema = UNPACKED / "usr/share/openvswitch/vswitch.ovsschema"
        await execute("ovsdb-tool", "create", str(file), str(schema), timeout_s=START_S)
        await self.start(DATABASE)
        await self.tell("--no-wait", "init")
        _EMPTY.append(file.read_bytes())

    async def add_switches(self, *names: str) -> None:
        """Make switches; skips the test where the kernel has none of this kind."""
        setting = f"datapath_type={self.datapath}"
        words = (("--", "add-br", name, "--", "set", "bridge", name, setting) for name in names)
        await self.tell(*itertools.chain.from_iterable(words))
        if not await in_thread(_is_there, names[0]):
            log = (self.home / f"{SWITCH}.log").read_text().splitlines()
            said = next((line for line in log if "|ERR|" in line or "|WARN|" in line), "")
            pytest.skip(f"NO OPEN VSWITCH IN THE KERNEL TESTED: {said.rpartition('|')[2]}")

    def _pid(self, daemon: str) -> Path:
        return self.home / f"{daemon}.pid"


def with_switches(
    datapath: str, scenario: Callable[[LinuxNetwork, OpenVSwitch], Awaitable[None]]
) -> None:
    """Play a scenario in a network of its own, with the switches ovs0 and ovs1, and a bridge br0.

    Skips the test where that is not possible.
    """

    def furnish() -> None:
        with open_netlink("furnish") as netlink:
            netlink._socket.link("add", ifname="br0", kind="bridge")

    async def main() -> None:
        await in_thread(furnish)
        with _directory() as home:
            async with open_vswitch(home, datapath) as switch:
                await switch.add_switches("ovs0", "ovs1")
                await scenario(LinuxNetwork(), switch)

    in_new_network(main)


@contextlib.contextmanager
def _directory() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="ovs-"))  # pytest's own have paths too long for sockets
    try:
        yield made
    finally:
        shutil.rmtree(made)


@contextlib.asynccontextmanager
async def open_vswitch(home: Path, datapath: str) -> AsyncIterator[OpenVSwitch]:
    """Run both daemons, and have all programs of this process find them."""
    if not UNPACKED.exists():
        pytest.skip("NO OPEN VSWITCH TESTED: deploy/setup --test unpacks it")
    found = {
        "PATH": ":".join([*(str(UNPACKED / each) for each in PROGRAMS), ENVIRONMENT["PATH"]]),
        "LD_LIBRARY_PATH": str(UNPACKED / "usr/lib/x86_64-linux-gnu"),
        "OVS_PKGDATADIR": str(UNPACKED / "usr/share/openvswitch"),
        **{f"OVS_{kind}DIR": str(home) for kind in ("RUN", "LOG", "DB", "SYSCONF")},
    }
    # However busy this machine is: tests that want it to be over soon say so.
    patient = mock.patch.object(switch_commands, "LIMIT_S", int(START_S))
    with mock.patch.dict(ENVIRONMENT, found), patient:
        switch = OpenVSwitch(home, datapath)
        try:
            await switch.make_database()
            await switch.start(SWITCH)
            yield switch
        finally:
            switch.kill(SWITCH)
            switch.kill(DATABASE)


def _is_there(name: str) -> bool:
    with open_netlink("look at the links of this node") as netlink:
        return netlink.find(name) is not None
