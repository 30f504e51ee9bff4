"""How many no-op jobs a second, through LUXI: three candidates, mutual TLS, fsync.

The coordinator, three noded and this client share the machine; on real nodes the coordinator
has it for itself.
"""

import argparse
import os
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from common.luxi.client import Client
from tests.bench.trio import GANETI, Machine, cpu_s, trio

JOBS, ROUNDS, SINGLE = 300, 5, 100
GANETI_JOBS_PER_S = 1.8  # 300 submitted one by one
CONNECTIONS = 8
NOTHING = {"OP_ID": "OP_TEST_DELAY", "duration": 0.0}

Submit = Callable[[Machine, int], list[int]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    rounds = parser.parse_args().rounds
    with trio() as machines:
        master = machines[0]
        print(
            f"{JOBS} no-op jobs, until the last one has ended; median of {rounds}; "
            f"{os.cpu_count()} processors for client, coordinator and 3 noded"
        )
        # The journal of SQLite and the connections are warm after the first.
        finish(master, many(master, JOBS))
        for title, submit in (
            ("SubmitManyJobs", many),
            ("SubmitJob, one connection", singly),
            (f"SubmitJob, {CONNECTIONS} connections", side_by_side),
        ):
            rate = statistics.median(rate_of(master, submit) for _ in range(rounds))
            print(f"  {title:28}{rate:6.0f} jobs/s = {rate / GANETI_JOBS_PER_S:5.0f} x Ganeti")
        print(f"  {'':28}{GANETI_JOBS_PER_S:6} jobs/s, one by one: {GANETI}")
        report_processors(machines)
        report_latency("one job, submitted to ended", lambda: one_job(master), SINGLE)
        with master.client() as client:
            report_latency(
                "one commit (SetWatcherPause)", lambda: client.call("SetWatcherPause", None), SINGLE
            )


def rate_of(master: Machine, submit: Submit) -> float:
    began = time.perf_counter()
    finish(master, submit(master, JOBS))
    return JOBS / (time.perf_counter() - began)


def many(master: Machine, count: int) -> list[int]:
    with master.client() as client:
        answers = client.call("SubmitManyJobs", [[NOTHING]] * count)
    return [number for _, number in answers]


def singly(master: Machine, count: int) -> list[int]:
    with master.client() as client:
        return [client.call("SubmitJob", [NOTHING]) for _ in range(count)]


def side_by_side(master: Machine, count: int) -> list[int]:
    numbers: list[int] = []

    def submit(part: int) -> None:
        numbers.extend(singly(master, part))

    parts = [len(range(start, count, CONNECTIONS)) for start in range(CONNECTIONS)]
    threads = [threading.Thread(target=submit, args=(part,)) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(numbers)


def finish(master: Machine, numbers: Sequence[int]) -> None:
    """Return when all jobs have succeeded; asks little, so as not to disturb."""
    with master.client() as client:
        left = list(numbers)
        while left:
            wait(client, left[-1])
            rows = client.call("QueryJobs", left, ["id", "status"])
            if failed := [row for row in rows if row[1] in ("error", "canceled")]:
                raise RuntimeError(f"Jobs failed: {failed[:3]}")
            left = [int(number) for number, status in rows if status != "success"]


def wait(client: Client, number: int) -> None:
    status: Any = None
    while status not in ("success", "error", "canceled"):
        told = client.call("WaitForJobChange", number, ["status"], [status], None, 60)
        if told != "nochange":
            ((status,), _) = told


def one_job(master: Machine) -> None:
    with master.client() as client:
        wait(client, client.call("SubmitJob", [NOTHING]))


def report_processors(machines: Sequence[Machine]) -> None:
    """Print who spends the processors' time."""
    daemons = {
        f"{program.removeprefix('gantry-')} {machine.name}": pid
        for machine in machines
        for program in ("gantry-coordinator", "gantry-noded")
        for pid in machine.processes(program)
    }
    before = {name: cpu_s(pid) for name, pid in daemons.items()}
    rate_of(machines[0], many)
    spent = {name: (cpu_s(pid) - before[name]) / JOBS * 1e6 for name, pid in daemons.items()}
    print("  µs of CPU a job: " + ", ".join(f"{name} {us:.0f}" for name, us in spent.items()))


def report_latency(title: str, action: Callable[[], object], times: int) -> None:
    took_ms = []
    for _ in range(times):
        began = time.perf_counter()
        action()
        took_ms.append((time.perf_counter() - began) * 1000)
    cuts = statistics.quantiles(took_ms, n=100)
    print(f"  {title:28}   p50 {cuts[49]:.1f} ms, p99 {cuts[98]:.1f} ms")


if __name__ == "__main__":
    main()
