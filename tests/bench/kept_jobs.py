"""What jobs that have ended cost: on disk, in memory, at a take-over; in the state and archived.

One candidate's replica in this process, on a real file; no network. ``python -m
tests.bench.kept_jobs 100000`` takes half a minute.
"""

import argparse
import asyncio
import gc
import tempfile
import time
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path

from common.model.commit import Change, next_commit
from common.model.job import ArchivedJob, Job, LogEntry, OperationRecord, Status
from common.model.stamp import Stamp
from common.model.stored import Stored
from common.names import Epoch, JobId
from coordinator.state.archive import Archive
from coordinator.state.loading import load
from coordinator.state.rows import Put, settle
from noded.handlers.replica import ReplicaHandlers

BATCH = 2000


def job(number: int) -> Job:
    """Return a job that has created an instance: three steps, what it said, what it was told."""
    steps = ("create disk 0 (64 MiB) on gamma", f"add web{number} to the configuration",
             f"start web{number} on gamma")  # fmt: skip
    record = OperationRecord(
        input={
            "OP_ID": "OP_INSTANCE_CREATE", "instance_name": f"web{number}", "mode": "create",
            "disk_template": "sharedfile", "disks": [{"size": 64}], "nics": [{"link": "br0"}],
            "pnode": "gamma", "start": True, "beparams": {"memory": 256, "vcpus": 1},
            "hvparams": {"kernel_path": "/boot/vmlinuz"}, "hypervisor": "kvm", "os_type": None,
            "iallocator": None, "tags": [], "wait_for_sync": True, "name_check": False,
        },
        summary=f"INSTANCE_CREATE(web{number})", status=Status.SUCCESS, result=["gamma"],
        log=tuple(
            LogEntry(serial=n, time=1e9 + n, message=f"* {title}")
            for n, title in enumerate(steps, start=1)
        ),
        started=1e9, executed=1e9 + 1, ended=1e9 + 5,
    )  # fmt: skip
    return Job(id=JobId(number), ops=(record,), received=1e9, started=1e9, ended=1e9 + 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--archived", action="store_true", help="only archived ones")
    parser.add_argument("jobs", type=int, nargs="*", default=[10_000, 100_000])
    print(f"{'jobs':>9} {'kept':9} {'file':>9} {'open':>8} {'load':>8} {'memory':>9} {'numbers':>8}"
          f" {'find':>8} {'page':>8}")  # fmt: skip
    fresh = get_context("spawn")  # a process each, so that none reuses another's memory
    options = parser.parse_args()
    for count in options.jobs:
        for kept in ("archived",) if options.archived else ("archived", "in state"):
            process = fresh.Process(target=measure_here, args=(count, kept))
            process.start()
            process.join()


def measure_here(count: int, kept: str) -> None:
    asyncio.run(measure(count, kept))


async def measure(count: int, kept: str) -> None:
    with tempfile.TemporaryDirectory(prefix="gantry-bench-") as directory:
        path = Path(directory) / "state.sqlite"
        replica = ReplicaHandlers(path)
        await fill(replica, count, archived=kept == "archived")
        await replica.close()
        size = sum(each.stat().st_size for each in path.parent.iterdir()) / 2**20
        replica = ReplicaHandlers(path)
        began = time.perf_counter()
        await replica.stamp()
        opened = time.perf_counter() - began
        before, began = resident_mib(), time.perf_counter()
        loaded = await load(replica)
        loading = time.perf_counter() - began
        gc.collect()
        memory = resident_mib() - before
        archive = Archive(lambda: replica, Stamp)
        took = []
        for ask in (replica.archived, lambda: archive.find(JobId(count // 2)), archive.oldest):
            began = time.perf_counter()
            await ask()
            took.append(time.perf_counter() - began)
        print(f"{count:9} {kept:9} {size:5.0f} MiB {opened:6.2f} s {loading:6.2f} s "
              f"{memory:5.0f} MiB " + " ".join(f"{each * 1000:5.0f} ms" for each in took),
              flush=True)  # fmt: skip
        assert len(loaded.state.jobs) == (0 if kept == "archived" else count)
        await replica.close()


async def fill(replica: ReplicaHandlers, count: int, *, archived: bool) -> None:
    stamp = Stamp()
    for changes in batches(count, archived=archived):
        commit = next_commit(stamp, Epoch(1), changes)
        stamp = await replica.append(commits=(commit,))


def batches(count: int, *, archived: bool) -> Iterator[tuple[Change, ...]]:
    for first in range(1, count + 1, BATCH):
        made = (job(number) for number in range(first, min(first + BATCH, count + 1)))
        yield tuple(change(ArchivedJob(job=each) if archived else each) for each in made)


def change(item: Stored) -> Change:
    return settle(Put(item))[1]


def resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


if __name__ == "__main__":
    main()
