"""Requests per second and the time of the slowest hundredth, of the REST interface over TLS.

Three processes: a coordinator of a simulated cluster with that many instances, ``gantry-rapi``,
and the clients, which keep their connections and ask one thing after the other.
"""

import argparse
import asyncio
import base64
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from common.model.backing import FileBacking
from common.model.disk import Disk
from common.model.instance import AdminState, Instance
from common.model.nic import Nic
from common.model.template import DiskTemplate
from common.names import DiskId, InstanceId, InstanceName, MiB, NicId, NodeId
from coordinator.master.luxi_server import LuxiServer
from coordinator.state.rows import Put
from tests.support.cluster import simulated_cluster
from tests.support.rapi import WRITER, RapiProcess, rapi_process

NODES, AT_ONCE, SECONDS, ORDERS = 5, 500, 3.0, 20
LOGIN = base64.b64encode(":".join(WRITER).encode()).decode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--coordinator", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("instances", type=int, nargs="*", default=[20, 1000, 10_000])
    options = parser.parse_args()
    if options.coordinator:
        asyncio.run(serve(options.coordinator, options.instances[0]))
        return
    print(f"{'instances':>9} {'request':26} {'clients':>7} {'/s':>9} {'median':>9} {'p99':>9}")
    for count in options.instances:
        measure(count)


async def serve(path: Path, count: int) -> None:
    """Be the coordinator, until standard input ends."""
    async with simulated_cluster(nodes=NODES) as cluster:
        nodes = list(cluster.config.nodes)
        for begin in range(0, count, AT_ONCE):
            numbers = range(begin, min(begin + AT_ONCE, count))
            items = [item for n in numbers for item in instance(n, nodes[n % NODES])]
            await cluster.master.running.store.commit([Put(item) for item in items])
        server = LuxiServer(path)
        await server.start(cluster.master.running.luxi)
        print("ready", flush=True)
        used = time.process_time()
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            print(time.process_time() - used, flush=True)
            used = time.process_time()
            del line
        await server.stop()


def instance(number: int, node: str) -> tuple[Instance, Disk, Nic]:
    uuid = f"00000000-0000-4000-8000-{number:012x}"
    disk = Disk(
        uuid=DiskId(f"d{uuid[1:]}"), size=MiB(1024),
        backing=FileBacking(path=f"/srv/{uuid}", shared=True),
    )  # fmt: skip
    nic = Nic(uuid=NicId(f"e{uuid[1:]}"), mac=f"aa:00:{number:08x}"[:17])
    made = Instance(
        uuid=InstanceId(uuid), name=InstanceName(f"web{number}.example.com"),
        primary_node=NodeId(node), disk_template=DiskTemplate.SHAREDFILE,
        disks=(disk.uuid,), nics=(nic.uuid,),
        admin_state=AdminState.DOWN, hypervisor="kvm",
    )  # fmt: skip
    return made, disk, nic


@contextmanager
def cluster_of(count: int, folder: Path) -> Iterator[tuple[RapiProcess, Callable[[], float]]]:
    """Yield the daemon, and what tells the coordinator's processor seconds since asked last."""
    luxi = folder / "luxi"
    program = (sys.executable, "-m", "tests.bench.rapi", "--coordinator", str(luxi), str(count))
    with subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as coordinator:
        assert coordinator.stdin is not None
        assert coordinator.stdout is not None
        assert coordinator.stdout.readline() == "ready\n"

        def used_s() -> float:
            assert coordinator.stdin is not None
            assert coordinator.stdout is not None
            print(file=coordinator.stdin, flush=True)
            return float(coordinator.stdout.readline())

        with rapi_process(folder / "root", luxi) as rapi:
            yield rapi, used_s
        coordinator.stdin.close()


def measure(count: int) -> None:
    with tempfile.TemporaryDirectory() as name, cluster_of(count, Path(name)) as (rapi, used_s):
        begun_s = time.perf_counter()
        while Client(rapi.port).ask("GET", "/2/tags") != 200:
            time.sleep(0.02)
        whole_s = time.perf_counter() - begun_s
        print(f"{count:9} whole after {whole_s:.2f} s, of which the coordinator {used_s():.2f}")
        for clients in (1, 4, 64):
            show(count, "GET /version", clients, rapi)
            show(count, "GET /2/instances?bulk=1", clients, rapi)
            show(count, "GET /2/instances/web1.example.com", clients, rapi)
        print(f"{count:9} the coordinator meanwhile: {used_s():.2f} s of its processor")
        show_delay(count, rapi)
        for clients in (1, 4, 64):
            show(count, "PUT /2/tags?tag=a&dry-run=1", clients, rapi)
        memory = Path(f"/proc/{rapi.pid}/status").read_text().split("VmRSS:")[1].split()[0]
        print(f"{count:9} memory of gantry-rapi: {int(memory) // 1024} MiB")


def show(count: int, request: str, clients: int, rapi: RapiProcess) -> None:
    method, _, path = request.partition(" ")
    times: list[float] = []
    callers = [Client(rapi.port) for _ in range(clients)]
    until_s = time.perf_counter() + SECONDS

    def run(client: Client) -> None:
        while (begun_s := time.perf_counter()) < until_s:
            assert client.ask(method, path) == 200
            times.append(time.perf_counter() - begun_s)

    threads = [threading.Thread(target=run, args=(each,)) for each in callers]
    begun_s = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in callers:
        each.close()
    rate = len(times) / (time.perf_counter() - begun_s)
    times.sort()
    median, slow = times[len(times) // 2], times[int(len(times) * 0.99)]
    shown = path.partition(".")[0]
    print(
        f"{count:9} {method} {shown:22} {clients:7} {rate:9.1f} {median * 1000:6.1f} ms"
        f" {slow * 1000:6.1f} ms"
    )


def show_delay(count: int, rapi: RapiProcess) -> None:
    """Print how long after an order, job included, an event tells what it did."""
    listener, client = Client(rapi.port), Client(rapi.port)
    listener.send("GET", "/2/events?kinds=cluster")
    times = []
    for number in range(ORDERS):
        begun_s = time.perf_counter()
        assert client.ask("PUT", f"/2/tags?tag=new{number}") == 200
        listener.read_until(b'"new%d"' % number)
        times.append(time.perf_counter() - begun_s)
    times.sort()
    median, slowest = times[len(times) // 2] * 1000, times[-1] * 1000
    print(f"{count:9} from an order to the event: median {median:.0f} ms, at most {slowest:.0f} ms")


class Client:
    """One connection."""

    def __init__(self, port: int) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        plain = socket.create_connection(("127.0.0.1", port))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = context.wrap_socket(plain)
        self._buffer = bytearray(1 << 20)

    def close(self) -> None:
        self._socket.close()

    def send(self, method: str, path: str) -> None:
        head = f"{method} {path} HTTP/1.1\r\nHost: rapi\r\nAuthorization: Basic {LOGIN}\r\n\r\n"
        self._socket.sendall(head.encode())

    def read_until(self, text: bytes) -> None:
        seen = b""
        while text not in seen:
            seen = seen[-len(text) :] + self._socket.recv(1 << 16)

    def ask(self, method: str, path: str) -> int:
        """Return the status of the answer, after all of it was read."""
        self.send(method, path)
        size = self._socket.recv_into(self._buffer)
        answer = bytes(self._buffer[:size])
        while b"\r\n\r\n" not in answer:
            size = self._socket.recv_into(self._buffer)
            answer += bytes(self._buffer[:size])
        told, _, body = answer.partition(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1])
            for line in told.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        )
        rest = length - len(body)
        while rest > 0:
            rest -= self._socket.recv_into(self._buffer)
        return int(told.split()[1])


if __name__ == "__main__":
    main()
