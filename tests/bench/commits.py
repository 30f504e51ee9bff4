"""What a commit costs: three candidates, real noded processes, mutual TLS, fsync.

The nodes share this machine and its disk, so real nodes are faster; the coordinator shares it
too.
"""

import asyncio
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

import uvloop

from common.messages import to_json
from common.model.cluster import Cluster
from common.model.group import Group
from common.model.job import Job, OperationRecord
from common.model.node import Node
from common.names import ClusterId, ClusterName, Epoch, GroupId, GroupName, JobId, NodeId, NodeName
from common.noderpc.replica import Replica
from common.paths import Paths
from common.tls.authority import issue, make_authority
from common.tls.context import AUTHORITY, CERTIFICATE, KEY, client_context
from common.tls.keys import KeyPair, make_key, make_request
from coordinator.nodes.calls import Nodes
from coordinator.nodes.https import HttpsDial
from coordinator.state.rows import Put
from coordinator.state.state import State
from coordinator.state.store import Store
from noded.identity.directory import MEMBER, Member

CLUSTER = ClusterName("bench")
NAMES = ("alpha", "beta", "gamma")
SINGLE = 500  # commits one after the other
CLIENTS, SECONDS = 300, 6.0
UPDATES = 3  # of its row that a job makes in its life


def main() -> None:
    directory = Path(os.environ.get("TMPDIR", "/var/tmp"))
    with tempfile.TemporaryDirectory(dir=directory) as scratch, ExitStack() as stack:
        print(f"commits, {len(NAMES)} candidates on this machine, state below {directory}")
        print(f"  one bare write and fsync here: {fsync_ms(Path(scratch)):.2f} ms (median)")
        authority = make_authority(CLUSTER, now=time.time())
        nodes = [stack.enter_context(noded(name, Path(scratch), authority)) for name in NAMES]
        identity = Paths(f"{scratch}/alpha").identity
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(measure(nodes, identity))


async def measure(nodes: list[Node], identity: Path) -> None:
    async with HttpsDial(client_context(identity)) as dial:
        calls = Nodes(dial, Epoch(1), Random())
        store = Store(State(), Epoch(1), lambda node: calls.service(Replica, node))
        async with asyncio.TaskGroup() as group:
            running = group.create_task(store.run())
            await store.commit(
                [
                    Put(Cluster(uuid=ClusterId("c"), name=CLUSTER, master=NodeId("alpha"))),
                    Put(Group(uuid=GroupId("g"), name=GroupName("default"))),
                    Put(nodes[0]),
                ]
            )
            for node in nodes[1:]:
                await store.commit([Put(node)])
            await one_by_one(store)
            await all_at_once(store)
            running.cancel()


async def one_by_one(store: Store) -> None:
    took_ms: list[float] = []
    for number in range(SINGLE):
        began = time.perf_counter()
        await store.commit([Put(job(number % 20 + 1, number))])
        took_ms.append((time.perf_counter() - began) * 1000)
    cuts = statistics.quantiles(took_ms, n=100)
    print(f"  one at a time: p50 {cuts[49]:.1f} ms, p99 {cuts[98]:.1f} ms")


async def all_at_once(store: Store) -> None:
    loop = asyncio.get_running_loop()
    until, done = loop.time() + SECONDS, 0
    before, cpu = store.state.stamp.serial, own_cpu_s()

    async def client(number: int) -> None:
        nonlocal done
        round_ = 0
        while loop.time() < until:
            await store.commit([Put(job(number * 1000 + round_ // UPDATES + 100, round_))])
            round_ += 1
            done += 1

    async with asyncio.TaskGroup() as group:
        for number in range(CLIENTS):
            group.create_task(client(number))
    rounds = store.state.stamp.serial - before
    print(
        f"  {CLIENTS} at the same time: {done / SECONDS:.0f} transactions/s in "
        f"{rounds / SECONDS:.0f} rounds/s; that is {done / SECONDS / UPDATES:.0f} jobs/s with "
        f"{UPDATES} updates each"
    )
    print(f"  coordinator: {(own_cpu_s() - cpu) / done * 1e6:.0f} µs of CPU a transaction")


def job(number: int, step: int) -> Job:
    record = OperationRecord(
        input={"OP_ID": "OP_TEST_DELAY", "duration": 0.0, "on_nodes": []},
        summary="TEST_DELAY(0)",
        result=step,
        started=1.0,
    )
    return Job(id=JobId(number), ops=(record,), received=1.0)


def own_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def fsync_ms(directory: Path) -> float:
    took_ms = []
    with (directory / "probe").open("wb", buffering=0) as file:
        for _ in range(100):
            began = time.perf_counter()
            file.write(bytes(4096))
            os.fsync(file.fileno())
            took_ms.append((time.perf_counter() - began) * 1000)
    return statistics.median(took_ms)


@contextmanager
def noded(name: str, scratch: Path, authority: KeyPair) -> Iterator[Node]:
    """Run a node that is a member already."""
    paths = Paths(str(scratch / name))
    paths.identity.mkdir(parents=True)
    key = make_key()
    certificate = issue(
        authority, make_request(key, NodeName(name)), node=NodeName(name),
        addresses=("127.0.0.1",), now=time.time(),
    )  # fmt: skip
    member = Member(
        cluster=CLUSTER, cluster_uuid=ClusterId("c"), node=NodeName(name), node_uuid=NodeId(name)
    )
    for file, text in (
        (KEY, key), (CERTIFICATE, certificate), (AUTHORITY, authority.certificate),
        (MEMBER, to_json(member).decode()),
    ):  # fmt: skip
        (paths.identity / file).write_text(text)
    paths.ssconf.mkdir()
    (paths.ssconf / "master_candidates").write_text("\n".join(NAMES))
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "noded.daemon.main", "--no-mlock", "--address", "127.0.0.1",
         "--port", str(port)],
        env={**os.environ, "GANTRY_ROOT": str(paths.root)}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        if "is ready" not in (said := process.stdout.readline()):
            raise RuntimeError(f"noded did not start: {said}")
        yield Node(
            uuid=NodeId(name), name=NodeName(name), primary_ip="127.0.0.1", port=port,
            group=GroupId("g"), master_candidate=True,
        )  # fmt: skip
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


if __name__ == "__main__":
    main()
