"""DRBD's module and the programs for it, played."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from noded.storage.drbd import line
from noded.storage.drbd.eight import netlink
from noded.storage.drbd.linux import LinuxDrbd
from noded.storage.drbd.messages import Message
from noded.storage.drbd.module import Connection, Endpoint
from noded.system.execute import CommandFailed, Finished

T = TypeVar("T")
SECRET = "5ec7e75ec7e75ec7e75ec7e75ec7e75e"
LINK = Connection("gantry-d", Endpoint("192.0.2.1", 11000), Endpoint("192.0.2.2", 11000))


class Programs:
    """Runs nothing, and remembers what."""

    def __init__(self, *failing: str, status: int = 10, stderr: str = "") -> None:
        self.ran: list[str] = []
        self._failing, self._status, self._stderr = failing, status, stderr

    async def __call__(self, *argv: str, timeout_s: float) -> Finished:
        self.ran.append(" ".join(argv))
        if any(word in argv for word in self._failing):
            raise CommandFailed("It failed.", status=self._status, stderr=self._stderr)
        return Finished(b"", b"")


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


Module = Callable[..., LinuxDrbd]
Asked = list[tuple[int, int, bytes]]  # what, of which device, and the rest


def answers(monkeypatch: pytest.MonkeyPatch, *told: list[Message]) -> Asked:
    """Have the module say something to what it is asked, one after the other; return that."""
    left = list(told)
    asked: Asked = []

    class Scripted(line.Line):
        def __init__(self, _: int) -> None:
            pass

        def __exit__(self, *_: object) -> None:
            pass

        def _ask(self, command: int, minor: int, parts: bytes, _: int) -> list[Message]:
            asked.append((command, minor, parts))
            return left.pop(0)

    monkeypatch.setattr(netlink, "Line", Scripted)
    return asked


def system(
    root: Path, *, version: str = "8.4.11", helper: str = "/bin/true", most: int = 1
) -> Path:
    (root / "proc").mkdir()
    told = f"version: {version} (api:1/proto:86-101)\n 3: cs:Connected ro:Primary/Secondary\n"
    (root / "proc/drbd").write_text(told)
    settings = root / "sys/module/drbd/parameters"
    settings.mkdir(parents=True)
    (settings.parent / "version").write_text(f"{version}\n")
    (settings / "usermode_helper").write_text(f"{helper}\n")
    (settings / "minor_count").write_text(f"{most}\n")
    return root
