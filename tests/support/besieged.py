"""Daemons in processes of their own, and how they answer while strangers come to them."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from common.errors import InvalidRequest
from common.model.node import Node
from common.names import GroupId, NodeId, NodeName
from common.noderpc.identity import Join
from common.noderpc.mastership import Mastership
from common.paths import Paths
from common.rpc.client import stub
from common.tls.token import JoinToken, read_token
from coordinator.nodes.stranger import stranger
from tests.support.https_node import LOCALHOST, TestCluster

BETWEEN_S = 0.02
LEAST_URGENT = 19

Ask = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Besieged:
    """A daemon on ``port``, with its files below ``root``."""

    root: Path
    port: int
    pid: int

    @property
    def token(self) -> JoinToken:
        return read_token(Paths(str(self.root)).join_token.read_text())

    def as_object(self, name: str) -> Node:
        return Node(
            uuid=NodeId(name), name=NodeName(name), primary_ip=LOCALHOST, port=self.port,
            group=GroupId("default"),
        )  # fmt: skip

    def memory_mib(self, which: str) -> float:
        """Return a line of its status: "VmRSS" for now, "VmHWM" for the most there ever was."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return next(
            int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith(which)
        )

    def busy_s(self) -> float:
        """Return how much time of a processor it has taken since it was started."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # 14, 15 in proc(5)


@dataclass
class Siege:
    """What came of it: how long each call took, and what the daemon took of memory and time."""

    took_s: list[float] = field(default_factory=list)
    grown_mib: float = 0.0
    busy_s: float = 0.0  # for each stranger; those who call meanwhile are in it

    def __str__(self) -> str:
        milliseconds = sorted(each * 1000 for each in self.took_s)
        return (
            f"{len(milliseconds)} calls: median {median(milliseconds):.1f} ms, 99 of 100 within "
            f"{milliseconds[len(milliseconds) * 99 // 100]:.1f} ms, slowest "
            f"{milliseconds[-1]:.1f} ms; memory grew by {self.grown_mib:.1f} MiB at most; "
            f"{self.busy_s * 1000:.2f} ms of a processor a stranger"
        )


async def besiege(
    daemon: Besieged,
    ask: Ask,
    count: int,
    *,
    at_once: int,
    how: str = "",
    only: tuple[str, ...] = (),
) -> Siege:
    """Call again and again while strangers come; an error of a call is raised.

    Args:
        daemon: which.
        ask: calls it.
        count: of strangers.
        at_once: how many of them at the same time.
        how: as the command line of ``tests.support.strangers`` has it.
        only: the ways in which they come; all, if none is named.
    """
    siege = Siege()
    for _ in range(3):  # whatever it imports and allocates once
        await ask()
    before, busy_s = daemon.memory_mib("VmRSS"), daemon.busy_s()

    async def call() -> None:
        while True:
            began = time.perf_counter()
            await ask()
            siege.took_s.append(time.perf_counter() - began)
            await asyncio.sleep(BETWEEN_S)

    async with asyncio.TaskGroup() as group:
        calling = group.create_task(call())
        strangers = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.support.strangers",
            str(daemon.port), str(count), str(at_once), "7", how, *only,
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        # They come from elsewhere: here they get what the daemon and its callers leave.
        os.setpriority(os.PRIO_PROCESS, strangers.pid, LEAST_URGENT)
        status = await strangers.wait()
        calling.cancel()
    assert status == 0
    siege.grown_mib = max(0.0, daemon.memory_mib("VmHWM") - before)
    siege.busy_s = (daemon.busy_s() - busy_s) / count
    return siege


@asynccontextmanager
async def noded_in_process(root: Path) -> AsyncIterator[Besieged]:
    """Run a noded of no cluster, with its memory locked where that is allowed."""
    line = ["-m", "noded.daemon.main", "--address", LOCALHOST, "--port", "0"]
    async with _process(root, line) as (process, output):
        ready = (await output.readline()).decode()
        assert "is ready" in ready, ready
        port = int(ready.split(" port ")[1].split(";")[0])
        yield Besieged(root, port, process.pid)


@asynccontextmanager
async def monitor_in_process(root: Path, port: int) -> AsyncIterator[Besieged]:
    """Run a monitor."""
    line = ["-m", "noded.monitor.main", "--address", LOCALHOST, "--port", str(port)]
    async with _process(root, line) as (process, output):
        assert b"listens" in await output.readline()
        yield Besieged(root, port, process.pid)


@asynccontextmanager
async def _process(
    root: Path, line: list[str]
) -> AsyncIterator[tuple[asyncio.subprocess.Process, asyncio.StreamReader]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, *line, env=os.environ | {"GANTRY_ROOT": str(root)},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    assert process.stdout
    try:
        yield process, process.stdout
    finally:
        process.kill()
        await process.communicate()


@asynccontextmanager
async def candidate(daemon: Besieged, cluster: TestCluster) -> AsyncIterator[Ask]:
    """Call as a candidate, on a connection that is kept and on a new one in turn."""
    beta = daemon.as_object("beta")
    async with cluster.caller() as kept:
        turns = 0

        async def ask() -> None:
            nonlocal turns
            turns += 1
            if turns % 2:
                await kept.service(Mastership, beta).vote()
            else:
                async with cluster.caller() as new:
                    await new.service(Mastership, beta).vote()

        yield ask


def joiner(daemon: Besieged) -> Ask:
    """Call a node of no cluster as a master would that has mistaken its token."""
    join = stub(Join, stranger(daemon.as_object("beta"), daemon.token.fingerprint))

    async def ask() -> None:
        try:
            await join.request(node=NodeName("beta"), proof="none")
        except InvalidRequest:
            return
        raise AssertionError("a wrong proof was taken")

    return ask


def reader(daemon: Besieged) -> Ask:
    """Read the monitor's reports."""

    async def ask() -> None:
        stream, writer = await asyncio.open_connection(LOCALHOST, daemon.port)
        writer.write(b"GET /1/report/all HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        answer = await stream.read()
        writer.close()
        assert answer.startswith(b"HTTP/1.1 200 "), answer[:100]

    return ask
