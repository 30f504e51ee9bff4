"""How long choosing two nodes for a mirrored instance takes, beside Debian's hail.

    python -m tests.bench.allocator [--hail-up-to NODES] [SIZES ...]

First as it is inside the coordinator: ours is wall time, the median of several runs, hail's is
the processor time of one run. "first" includes building arrays from the picture; "next" has
them already. Then as processes that read the same request: medians of processor seconds, of wall
seconds, and how many times faster ours is.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

from common.model.disk import DiskTemplate
from coordinator.allocator.ledger import ledger_of
from coordinator.allocator.picture import Picture
from coordinator.allocator.place import survey
from coordinator.allocator.request import Allocate
from tests.unit.allocator.clusters import Taste, random_demand, random_picture
from tests.unit.allocator.hail import HAIL, question

SEED = 7
OURS = [
    sys.executable,
    "-c",
    "import sys; from coordinator.htools.hail import main; sys.exit(main())",
]
TASTES = {
    "mixed": Taste(templates=(DiskTemplate.DRBD,), fill=0.4, trouble=0.0, sound=True),
    "alike": Taste(templates=(DiskTemplate.DRBD,), fill=0.35, trouble=0.0, uniform=True, down=0),
}


def milliseconds(run: Callable[[], object], times: int) -> float:
    """Median wall time."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken) * 1000


def first(picture: Picture, request: Allocate) -> None:
    """Answer as if the picture had not been seen before."""
    ledger_of.cache_clear()
    survey(picture, request)


def process_seconds(argv: list[str], text: str, times: int) -> tuple[float, float]:
    """Medians of processor and wall time of a program that reads a request."""
    taken = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "request.json"
        path.write_text(text)
        for _ in range(times):
            before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run([*argv, str(path)], check=True, capture_output=True)
            wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            taken.append((cpu, wall))
    return statistics.median(cpu for cpu, _ in taken), statistics.median(w for _, w in taken)


def compare_processes(sizes: list[int], hail_up_to: int) -> None:
    """Run both programs on the same requests."""
    print(f"{'nodes':>6} {'request':>14} {'ours':>13} {'hail':>13} {'ratio':>13}  (cpu/wall s)")
    for size, (kind, text) in [(s, one) for s in sizes for one in requests(s)]:
        mine = process_seconds(OURS, text, 5 if size < 500 else 3)
        row = f"{size:6} {kind:>14} {mine[0]:6.2f}/{mine[1]:6.2f}"
        if HAIL and size <= hail_up_to:
            times = 5 if size < 200 else 1
            theirs = process_seconds([HAIL], text, times)
            ratios = (other / own for other, own in zip(theirs, mine, strict=True))
            row += f" {theirs[0]:6.2f}/{theirs[1]:6.2f} {'/'.join(f'{r:6.1f}' for r in ratios)}"
        print(row, flush=True)


def requests(size: int) -> Iterator[tuple[str, str]]:
    """A pair to place, on two kinds of cluster, and a node's secondaries to move."""
    rng = Random(SEED)
    alike = replace(TASTES["alike"], nodes=size)
    demand = random_demand(rng, alike, "new.x")
    yield "alike", json.dumps(question(random_picture(rng, alike), Allocate(instance=demand)))
    sized = replace(TASTES["mixed"], nodes=size)
    picture = random_picture(rng, sized)
    message = question(picture, Allocate(instance=random_demand(rng, sized, "new.x")))
    yield "mixed", json.dumps(message)
    node = picture.nodes[0].name
    there = [one.name for one in picture.instances if one.secondary == node]
    asked = {"type": "node-evacuate", "instances": there, "evac_mode": "secondary-only"}
    yield "node-evacuate", json.dumps(message | {"request": asked})


def hail_milliseconds(picture: Picture, request: Allocate) -> float:
    """Processor time of one run of hail."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "request.json"
        path.write_text(json.dumps(question(picture, request)))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [str(HAIL), str(path)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the placement of a pair.")
    parser.add_argument("sizes", nargs="*", type=int, default=[50, 200, 1000, 2000])
    parser.add_argument("--hail-up-to", type=int, default=200, metavar="NODES")
    parser.add_argument("--processes", nargs="*", type=int, default=[20, 50, 100, 200, 500])
    parser.add_argument("--processes-hail-up-to", type=int, default=500, metavar="NODES")
    arguments = parser.parse_args()
    print(f"seed {SEED}; milliseconds")
    print(f"{'nodes':>6} {'kind':>6} {'instances':>9} {'first':>8} {'next':>8} {'hail':>8}")
    for size in arguments.sizes:
        for kind, taste in TASTES.items():
            rng = Random(SEED)
            sized = replace(taste, nodes=size)
            picture = random_picture(rng, sized)
            request = Allocate(instance=random_demand(rng, sized, "new.x"))
            cold = milliseconds(partial(first, picture, request), 3)
            warm = milliseconds(partial(survey, picture, request), 7)
            hail = "-"
            if HAIL and size <= arguments.hail_up_to:
                hail = f"{hail_milliseconds(picture, request):.0f}"
            print(
                f"{size:6} {kind:>6} {len(picture.instances):9} {cold:8.1f} {warm:8.1f} {hail:>8}"
            )
    compare_processes(arguments.processes, arguments.processes_hail_up_to)


if __name__ == "__main__":
    main()
