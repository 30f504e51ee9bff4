"""Twenty instances placed at the same time, through LUXI: three nodes, three candidates, fsync.

To compare with another version of Gantry, run this file with that version's directory in
PYTHONPATH.
"""

import argparse
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.bench.jobs import finish
from tests.bench.trio import Machine, cpu_s, trio

COUNT, ROUNDS = 20, 5  # more do not fit: four virtual processors on each real one
TEMPLATES: dict[str, list[dict[str, int]]] = {"diskless": [], "file": [{"size": 64}]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="gantry-bench-") as files:
        options = ("--file-storage-dir", files, "--enabled-disk-templates", "file,diskless")
        with trio(*options) as machines:
            master = machines[0]
            print(f"{COUNT} instances at once, placed by the allocator; median of {rounds}")
            remove(master, place(master, "diskless"))  # NumPy is loaded after the first
            for template in TEMPLATES:
                report(master, template, rounds)


def report(master: Machine, template: str, rounds: int) -> None:
    (coordinator,) = master.processes("gantry-coordinator")
    walls, spent, homes = [], [], Counter[str]()
    for _ in range(rounds):
        before, began = cpu_s(coordinator), time.perf_counter()
        numbers = place(master, template)
        walls.append(time.perf_counter() - began)
        spent.append(cpu_s(coordinator) - before)
        homes = Counter(home for _, home in instances(master))
        remove(master, numbers)
    spread = "/".join(str(count) for _, count in sorted(homes.items()))
    print(
        f"  {template:10}{statistics.median(walls):6.2f} s until the last is there, "
        f"{statistics.median(spent) / COUNT * 1000:5.1f} ms of the coordinator's CPU each; "
        f"on the nodes in the end: {spread}"
    )


def place(master: Machine, template: str) -> list[int]:
    """Have the instances placed; return the numbers of the jobs."""
    orders = [[order(f"web{number}", template)] for number in range(COUNT)]
    return run(master, orders)


def remove(master: Machine, numbers: Sequence[int]) -> None:
    """Take away what ``place`` made."""
    assert len(numbers) == COUNT
    names = [name for name, _ in instances(master)]
    run(master, [[{"OP_ID": "OP_INSTANCE_REMOVE", "instance_name": name}] for name in names])


def order(name: str, template: str) -> dict[str, Any]:
    return {
        "OP_ID": "OP_INSTANCE_CREATE", "instance_name": name, "disk_template": template,
        "disks": TEMPLATES[template], "iallocator": "hail", "start": False,
        "beparams": {"maxmem": 128, "minmem": 128},
    }  # fmt: skip


def run(master: Machine, jobs: list[list[dict[str, Any]]]) -> list[int]:
    with master.client() as client:
        numbers = [int(number) for _, number in client.call("SubmitManyJobs", jobs)]
    finish(master, numbers)
    return numbers


def instances(master: Machine) -> list[tuple[str, str]]:
    """Return the names of all instances and their nodes."""
    with master.client() as client:
        rows = client.call("QueryInstances", [], ["name", "pnode"])
    return [(name, home) for name, home in rows]


if __name__ == "__main__":
    main()
