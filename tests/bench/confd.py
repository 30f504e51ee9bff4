"""Questions per second that ``gantry-confd`` answers, and when it knows what was published.

It is a process of its own; clients are threads of this one, each with one question under way.
"""

import argparse
import asyncio
import os
import socket
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from common.confd_snapshot import Snapshot, pack
from noded.handlers.confd import ConfdHandlers
from tests.support.confd import question, read
from tests.support.confd_process import KEY, ConfdProcess, confd_process
from tests.support.published import published

SECONDS, NEWS = 3.0, 20
ROLE, MASTER, BY_ADDRESS = 1, 3, 2
KINDS: dict[str, tuple[int, Any]] = {
    "master": (MASTER, None),
    "role of a node": (ROLE, "beta"),
    "node of an address": (BY_ADDRESS, {"0": "br1", "1": "198.51.100.1"}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("instances", type=int, nargs="*", default=[20, 1000, 10_000])
    options = parser.parse_args()
    print(f"{'instances':>9} {'question':20} {'clients':>7} {'/s':>9} {'median':>9} {'p99':>9}")
    for count in options.instances:
        with tempfile.TemporaryDirectory() as name, confd_process(Path(name)) as confd:
            measure(count, confd)


def measure(count: int, confd: ConfdProcess) -> None:
    publish(confd, cluster_of(count, serial=1))
    while confd.ask(MASTER, patience_s=0.5) is None:
        pass
    for clients in (1, 4, 64):
        for name in KINDS:
            show(count, name, clients, confd.port)
    show_delay(count, confd)
    status = Path(f"/proc/{confd.pid}/status").read_text()
    print(f"{count:9} memory: {int(status.split('VmRSS:')[1].split()[0]) // 1024} MiB")


def cluster_of(count: int, serial: int) -> Snapshot:
    small = published(serial)
    one = small.instances["uuid-web2"]
    uuids = (f"00000000-0000-4000-8000-{number:012x}" for number in range(count))
    return replace(small, instances={each: replace(one, uuid=each, name=each) for each in uuids})


def publish(confd: ConfdProcess, snapshot: Snapshot) -> None:
    asyncio.run(ConfdHandlers(confd.folder).publish(key=KEY, snapshot=pack(snapshot)))


def show(count: int, name: str, clients: int, port: int) -> None:
    times: list[float] = []
    until_s = time.perf_counter() + SECONDS
    kind, query = KINDS[name]

    def run(client: int) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mine:
            mine.settimeout(5.0)
            mine.connect(("127.0.0.1", port))
            number = 0
            while (begun_s := time.perf_counter()) < until_s:
                number += 1
                salt = f"{os.getpid()}.{name}.{clients}.{client}.{number}"
                mine.send(question(KEY.encode(), kind, query, now=time.time(), salt=salt))
                assert read(mine.recv(65_536), KEY.encode(), salt=salt).status == 0
                times.append(time.perf_counter() - begun_s)

    threads = [threading.Thread(target=run, args=(client,)) for client in range(clients)]
    begun_s = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rate = len(times) / (time.perf_counter() - begun_s)
    times.sort()
    median, slow = times[len(times) // 2] * 1000, times[int(len(times) * 0.99)] * 1000
    print(f"{count:9} {name:20} {clients:7} {rate:9.1f} {median:6.2f} ms {slow:6.2f} ms")


def show_delay(count: int, confd: ConfdProcess) -> None:
    """Print how long after a file was written it is told."""
    times = []
    for serial in range(2, NEWS + 2):
        snapshot = cluster_of(count, serial)
        publish(confd, snapshot)
        begun_s = time.perf_counter()
        while (told := confd.ask(MASTER)) is None or told.serial < serial:
            time.sleep(0.005)
        times.append(time.perf_counter() - begun_s)
    times.sort()
    median, slowest = times[len(times) // 2] * 1000, times[-1] * 1000
    print(f"{count:9} from the file to an answer: median {median:.0f} ms, at most {slowest:.0f} ms")


if __name__ == "__main__":
    main()
