"""How long choosing two nodes for a mirrored instance takes, beside Debian's hail.

    python -m tests.bench.allocator [--hail-up-to NODES] [SIZES ...]

Ours is wall time inside one process, the median of several runs, hail's is the processor
time of one run. "first" includes building arrays from the picture; "next" has them already.
"""

import argparse
import json
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
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


if __name__ == "__main__":
    main()
