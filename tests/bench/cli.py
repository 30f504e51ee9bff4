"""How long ``gnt-instance list`` takes to start, and with 1,000 instances to show."""

import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from common.luxi.answers import Request
from common.model.cluster import Cluster
from common.model.group import Group
from common.model.instance import AdminState, Instance
from common.model.node import Node
from common.model.pool import Pool
from common.model.stamp import Stamp
from common.model.template import DiskTemplate
from common.names import (
    ClusterId,
    ClusterName,
    GroupId,
    GroupName,
    InstanceId,
    InstanceName,
    MiB,
    NodeId,
    NodeName,
)
from common.noderpc.disks import DiskReport
from common.noderpc.facts import NodeFacts
from common.noderpc.instances import GuestReport, GuestState
from common.noderpc.mirrors import MirrorReport
from common.noderpc.operating_systems import DefinitionReport
from common.noderpc.providers import ProviderReport
from common.paths import Paths
from coordinator.master.luxi_server import LuxiServer
from coordinator.queries.live import Answers, Specs
from coordinator.queries.query import query
from coordinator.queries.source import Source
from coordinator.state.state import State, state_of

NODES, ROUNDS = 20, 15
RUN = "import sys; from coordinator.cli.main import gnt_instance; sys.exit(gnt_instance())"


def uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012x}"


def cluster_of(instances: int) -> State:
    """Return a cluster of so many running instances, spread over its nodes."""
    group = Group(uuid=GroupId(uuid(1)), name=GroupName("default"))
    nodes = [
        Node(
            uuid=NodeId(uuid(100 + index)), name=NodeName(f"node{index:02}"),
            primary_ip=f"192.0.2.{index}", group=group.uuid,
        )
        for index in range(NODES)
    ]  # fmt: skip
    made = (
        Instance(
            uuid=InstanceId(uuid(1000 + index)), name=InstanceName(f"web{index:04}.example.com"),
            primary_node=NodeId(nodes[index % NODES].uuid), admin_state=AdminState.UP,
            hypervisor="kvm", disk_template=DiskTemplate.DISKLESS, os="debian",
        )
        for index in range(instances)
    )  # fmt: skip
    cluster = Cluster(
        uuid=ClusterId(uuid(0)), name=ClusterName("bench"), master=NodeId(nodes[0].uuid)
    )
    return state_of((cluster, group, *nodes, *made), Stamp())


class RunningEverywhere:
    """Nodes on which all instances run."""

    def __init__(self, state: State) -> None:
        self._config = state.config

    async def guests(self, nodes: Iterable[Node]) -> Answers[tuple[GuestReport, ...]]:
        return {
            node.uuid: tuple(
                GuestReport(
                    id=instance.uuid, name=instance.name, state=GuestState.RUNNING,
                    memory=MiB(128), vcpus=1,
                )
                for instance in self._config.instances_on(node.uuid)
            )
            for node in nodes
        }  # fmt: skip

    async def definitions(self, nodes: Iterable[Node]) -> Answers[tuple[DefinitionReport, ...]]:
        return {node.uuid: () for node in nodes}

    async def providers(self, nodes: Iterable[Node]) -> Answers[tuple[ProviderReport, ...]]:
        return {node.uuid: () for node in nodes}

    async def exports(self, nodes: Iterable[Node]) -> Answers[tuple[str, ...]]:
        return {}

    async def mirrors(
        self,
        disks: Sequence[tuple[Node, Specs]],
    ) -> Answers[tuple[MirrorReport | None, ...]]:
        return {}

    async def disks(
        self, disks: Sequence[tuple[Node, Specs]]
    ) -> Answers[tuple[DiskReport | None, ...]]:
        return {}

    async def facts(
        self, nodes: Iterable[Node], *, storage: tuple[Pool, ...]
    ) -> Answers[NodeFacts]:
        return {}


@contextmanager
def served(state: State, path: Path) -> Iterator[None]:
    """Answer queries about ``state`` at ``path``, from a loop in a thread of its own."""
    source = Source(state=state, asker=RunningEverywhere(state))

    async def handle(request: Request) -> object:
        what, fields, condition = request.args
        return await query(what, fields, condition, source)

    ready, loop, done = threading.Event(), asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        server = LuxiServer(path)
        await server.start(handle)
        ready.set()
        await done.wait()
        await server.stop()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    ready.wait(10)
    try:
        yield
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join()
        loop.close()


def run(words: Sequence[str], root: str) -> tuple[float, float]:
    """Run Python with these words; return seconds on the clock and of the processor."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "GANTRY_ROOT": root}, stdout=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def report(title: str, samples: Sequence[tuple[float, float]], base: tuple[float, float]) -> None:
    wall, processor = (statistics.median(column) for column in zip(*samples, strict=True))
    print(
        f"{title:44}{wall * 1e3:7.1f} ms{processor * 1e3:7.1f} ms CPU"
        f"{wall / base[0]:6.1f}x{processor / base[1]:6.1f}x CPU"
    )


def loaded(root: str) -> set[str]:
    """Return which of the heavy modules a list command imports."""
    heavy = ("aiohttp", "asyncio", "cryptography", "dataclasses", "msgspec", "numpy", "ssl")
    code = (
        "import sys, json; sys.argv = ['gnt-instance', 'list', '--no-headers'];"
        "from coordinator.cli.main import gnt_instance; gnt_instance();"
        f"print(json.dumps([name for name in {heavy} if name in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "GANTRY_ROOT": root}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Print the figures; the two programs take turns, so that both meet the same machine."""
    with tempfile.TemporaryDirectory() as root:
        socket = Paths(root).luxi_socket
        heavy: set[str] = set()
        for count in (1, 1000):
            with served(cluster_of(count), socket):
                turns = [
                    (run(["-c", "pass"], root), run(["-c", RUN, "list"], root))
                    for _ in range(ROUNDS)
                ]
                heavy = loaded(root)
            nothing, listing = zip(*turns, strict=True)
            wall, processor = (statistics.median(column) for column in zip(*nothing, strict=True))
            base = (wall, processor)
            if count == 1:
                report("python3 -c pass", nothing, base)
            report(f"gnt-instance list, {count:,} instance{'s' * (count > 1)}", listing, base)
        print(f"heavy modules it imports: {', '.join(sorted(heavy)) or 'none'}")


if __name__ == "__main__":
    main()
