"""An agent as there may be in a guest: one that pretends, in this process, or Debian's."""

import asyncio
import contextlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from noded.hypervisor.kvm.user import NOBODY

QEMU_GA = Path(".cache/guest-agent/usr/sbin/qemu-ga").absolute()
# What would befall the machine that runs the tests; it has no rights to any of it, besides.
_NEVER = (
    "guest-shutdown", "guest-suspend-disk", "guest-suspend-ram", "guest-suspend-hybrid",
    "guest-fsfreeze-freeze", "guest-fsfreeze-freeze-list", "guest-fstrim", "guest-exec",
    "guest-file-open", "guest-set-time", "guest-set-vcpus", "guest-set-user-password",
    "guest-set-memory-blocks", "guest-ssh-add-authorized-keys",
)  # fmt: skip

INTERFACES = [
    {"name": "lo", "ip-addresses": [{"ip-address": "127.0.0.1"}]},
    {
        "name": "eth0",
        "hardware-address": "AA:00:00:00:00:01",
        "ip-addresses": [{"ip-address": "192.0.2.1"}, {"ip-address": "fe80::1"}],
    },
]


class PretendedAgent:
    """Answers as an agent does, and remembers what it was told.

    Attributes:
        told: all commands but those that only find out whether it is there.
        is_deaf: it takes what it is sent, and says nothing.
        refuses: commands that it does not carry out.
    """

    def __init__(self) -> None:
        self.told: list[str] = []
        self.is_frozen = False
        self.is_deaf = False
        self.refuses: set[str] = set()
        self.interfaces: Any = INTERFACES

    @contextlib.asynccontextmanager
    async def at(self, path: Path) -> AsyncIterator[None]:
        """Listen in the place of a QEMU whose guest has no agent."""
        await asyncio.to_thread(path.unlink, missing_ok=True)
        server = await asyncio.start_unix_server(self._serve, path)
        try:
            yield
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                order = json.loads(line.lstrip(b"\xff"))
                if not self.is_deaf:
                    writer.write(self._answer(order))
        finally:
            writer.transport.abort()

    def _answer(self, order: dict[str, Any]) -> bytes:
        command = order["execute"]
        if command == "guest-sync-delimited":
            return b"\xff" + _line({"return": order["arguments"]["id"]})
        self.told.append(command)
        if command in self.refuses:
            return _line({"error": {"class": "GenericError", "desc": "it is Sunday"}})
        match command:
            case "guest-network-get-interfaces":
                return _line({"return": self.interfaces})
            case "guest-fsfreeze-freeze":
                self.is_frozen = True
                return _line({"return": 2})
            case "guest-fsfreeze-thaw":
                self.is_frozen = False
                return _line({"return": 2})
            case _:
                return b""  # as when it was told to shut down


@contextlib.contextmanager
def debians_agent() -> Iterator[Path]:
    """Run Debian's agent without a right and without what it could do; yield its socket."""
    root = Path(tempfile.mkdtemp(prefix="agent-"))  # pytest's own nobody may enter
    root.chmod(0o777)
    socket = root / "agent.sock"
    words = [
        *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"),
        *("--bounding-set=-all", "--inh-caps=-all", "--", str(QEMU_GA), "-m", "unix-listen"),
        *("-p", str(socket), "-t", str(root), "-f", str(root / "pid"), "-b", ",".join(_NEVER)),
    ]
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    try:
        yield socket
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(root)


def _line(answer: dict[str, Any]) -> bytes:
    return json.dumps(answer).encode() + b"\n"
