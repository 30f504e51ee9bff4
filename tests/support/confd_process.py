"""A ``gantry-confd`` as a process of its own, on a node to which something is published."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from time import time
from typing import Any

from common.confd_snapshot import pack
from common.paths import Paths
from noded.handlers.confd import ConfdHandlers
from tests.support.confd import Told, question, read
from tests.support.published import SERIAL, published

CHECKOUT = Path(__file__).parents[2]
KEY = "c0fd" * 10
PATIENCE_S = 20.0


@dataclass(frozen=True)
class ConfdProcess:
    """``strays`` are the salts of answers to what was asked before, or not by ``ask``."""

    port: int
    pid: int
    folder: Path  # what is published
    client: socket.socket
    strays: list[str] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    def publish(self, serial: int = SERIAL) -> None:
        """Do what its node's daemon does when the master says so."""
        snapshot = pack(published(serial))
        asyncio.run(ConfdHandlers(self.folder).publish(key=KEY, snapshot=snapshot))

    def withdraw(self) -> None:
        asyncio.run(ConfdHandlers(self.folder).withdraw())

    def send(self, datagram: bytes) -> None:
        self.client.sendto(datagram, ("127.0.0.1", self.port))

    def ask(self, kind: int, query: Any = None, patience_s: float = PATIENCE_S) -> Told | None:
        """Ask once; None when no answer comes."""
        salt = f"{next(self._numbers)}"
        self.send(question(KEY.encode(), kind, query, now=time(), salt=salt))
        while (datagram := self.receive(patience_s)) is not None:
            if (of := json.loads(datagram[4:])["salt"]) == salt:
                return read(datagram, KEY.encode(), salt=salt)
            self.strays.append(of)
        return None

    def receive(self, patience_s: float = PATIENCE_S) -> bytes | None:
        self.client.settimeout(patience_s)
        try:
            return self.client.recv(65_536)
        except TimeoutError:
            return None


@contextmanager
def confd_process(root: Path) -> Iterator[ConfdProcess]:
    """Run it for the length of a block, until it is told to stop; ``root`` takes the place of /."""
    command = (sys.executable, "-m", "coordinator.confd.main", "-p", "0")
    process = subprocess.Popen(
        command,
        cwd=CHECKOUT,
        env=os.environ | {"GANTRY_ROOT": str(root)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        port = int(process.stdout.readline().rsplit(maxsplit=1)[-1])
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            yield ConfdProcess(port, process.pid, Paths(str(root)).confd, client)
    finally:
        process.terminate()
        process.stdout.close()
        status = process.wait(30)
    assert status == 0
