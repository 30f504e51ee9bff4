"""hail beside Debian's: every type of request, both programs in one run, and ours in-process.

    python -m tests.bench.allocator [--quick | --full] [--sizes NODES ...]

First as processes that read the same request: medians of processor and wall seconds, how many
times as long Debian's takes, what is aimed at, our memory, and below each size the two parts of
our time that no engine can save: Python starting up, and NumPy's import. Then inside the
coordinator, where the model are open already.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from common.model.template import DiskTemplate
from common.record import Record, replace
from coordinator.allocator.allocation.place import survey
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.next_model import with_instance
from coordinator.allocator.request import Allocate
from coordinator.allocator.snapshot import Snapshot
from tests.unit.allocator.clusters import Taste, random_demand, random_snapshot
from tests.unit.allocator.hail import HAIL, question

SEED = 7
_LAUNCHER = "from coordinator.htools.hail import main; sys.exit(main())"
_PLACE = f"import sys; sys.path.insert(0, {str(Path.cwd())!r})"
OURS = [sys.executable, "-I", "-c", f"{_PLACE}; {_LAUNCHER}"]
ALIKE = Taste(templates=(DiskTemplate.DRBD,), fill=0.35, trouble=0.0, uniform=True, down=0)
MIXED = Taste(templates=(DiskTemplate.DRBD,), fill=0.4, trouble=0.0, sound=True)
PLAIN = replace(ALIKE, templates=(DiskTemplate.PLAIN,))


class Case(Record):
    """One request; ``aim`` is how many times as long Debian's should take, at least."""

    kind: str
    nodes: int
    aim: float = 1
    theirs: bool = True  # whether Debian's has the patience


CASES = (
    Case("pair", 10), Case("pair", 20), Case("pair", 50), Case("pair, mixed", 50),
    Case("pair", 100, 3), Case("pair", 200, 10), Case("pair", 500, 50),
    Case("pair", 1000, 120, theirs=False), Case("pair", 2000, 120, theirs=False),
    Case("plain", 50), Case("plain", 100), Case("plain", 500, theirs=False),
    Case("evacuate secondaries", 50), Case("evacuate secondaries", 200),
    Case("evacuate secondaries", 500), Case("evacuate 20, all", 50),
    Case("evacuate 20, all", 100), Case("relocate", 50), Case("relocate", 200),
    Case("allocate 50", 50), Case("allocate 50", 100), Case("allocate 50", 500, theirs=False),
    Case("change group of 5", 50), Case("allocate secondary", 50),
)  # fmt: skip
QUICK = {("pair", 50), ("pair", 100), ("pair", 200), ("evacuate secondaries", 50), ("plain", 50)}


def message_of(case: Case) -> str:
    """The request as text."""
    rng = Random(SEED)
    taste = {"pair, mixed": MIXED, "plain": PLAIN}.get(case.kind, ALIKE)
    taste = replace(taste, nodes=case.nodes, groups=2 if "group" in case.kind else 1)
    snapshot = random_snapshot(rng, taste)
    demand = random_demand(rng, taste, "new.x")
    message = question(snapshot, Allocate(instance=demand))
    names = list(message["instances"])
    there = [one.name for one in snapshot.instances if one.secondary == 0]
    asked: dict[str, Any] = message["request"]
    match case.kind:
        case "evacuate secondaries":
            asked = {"type": "node-evacuate", "instances": there, "evac_mode": "secondary-only"}
        case "evacuate 20, all":
            asked = {"type": "node-evacuate", "instances": names[:20], "evac_mode": "all"}
        case "relocate":
            home = [message["instances"][names[0]]["nodes"][1]]
            asked = {"type": "relocate", "name": names[0], "required_nodes": 1}
            asked["relocate_from"] = home
        case "allocate 50":
            news = [asked | {"name": f"new{number}.x"} for number in range(50)]
            asked = {"type": "multi-allocate", "instances": news}
        case "change group of 5":
            group = message["nodes"][message["instances"][names[0]]["nodes"][0]]["group"]
            inside = [
                name
                for name, one in message["instances"].items()
                if message["nodes"][one["nodes"][0]]["group"] == group
            ]
            asked = {"type": "change-group", "instances": inside[:5], "target_groups": []}
        case "allocate secondary":
            one = message["instances"][names[0]]
            one.update(disk_template="plain", nodes=one["nodes"][:1])
            asked = {"type": "allocate-secondary", "name": names[0]}
        case _:
            pass  # one instance, as it is
    return json.dumps(message | {"request": asked})


@dataclass(frozen=True)
class Took:
    """Medians of processor and wall time in seconds, and the most memory in MiB."""

    cpu: float
    wall: float
    memory: int = 0

    @classmethod
    def of(cls, argv: list[str], times: int) -> "Took":
        words = [sys.executable, "-I", str(Path(__file__).with_name("took.py")), str(times), *argv]
        return cls(**json.loads(subprocess.check_output(words)))


def compare(case: Case) -> None:
    """Run both programs, taking turns, and print a line."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "request.json"
        path.write_text(message_of(case), encoding="utf-8")
        is_slow = case.nodes >= 200 or case.kind not in {"pair", "pair, mixed"}
        mine = Took.of([*OURS, str(path)], 5 if is_slow else 11)
        row = f"{case.nodes:6} {case.kind:>21} {mine.cpu:7.3f} {mine.wall:7.3f} {mine.memory:5}"
        if HAIL and case.theirs:
            other = Took.of([HAIL, str(path)], 1 if is_slow else 7)
            row += f" {other.cpu:7.3f} {other.wall:7.3f} {other.cpu / mine.cpu:7.1f}"
            row += f" {other.wall / mine.wall:7.1f} {case.aim:6.0f}"
    print(row, flush=True)


def floor() -> None:
    """What starting costs: Python as installed, and NumPy with one thread."""
    bare = Took.of([sys.executable, "-I", "-c", "pass"], 11)
    loads = "import os; os.environ['OPENBLAS_NUM_THREADS'] = '1'; import numpy"
    numpy = Took.of([sys.executable, "-I", "-c", loads], 11)
    print(f"Python starts in {bare.cpu * 1000:.1f} ms; NumPy takes", end=" ")
    print(f"{(numpy.cpu - bare.cpu) * 1000:.1f} ms more")


def milliseconds(run: Callable[[], object], times: int) -> float:
    """Median processor time."""
    taken = []
    for _ in range(times):
        start = time.process_time()
        run()
        taken.append(time.process_time() - start)
    return statistics.median(taken) * 1000


def survey_afresh(snapshot: Snapshot, request: Allocate) -> None:
    """Answer as if the snapshot had not been seen before."""
    survey(ClusterModel(snapshot), request)


def one_after_the_other(model: ClusterModel, request: Allocate, count: int) -> None:
    """Place equal instances, each on what the others leave."""
    index = model.index
    for _ in range(count):
        found = survey(model, request).best
        assert found is not None
        nodes = tuple(index[name] for name in found.choices[0].nodes)
        model = with_instance(model, request.instance, nodes)


def inside(sizes: list[int]) -> None:
    """Print what a placement takes once the model are open."""
    for size in sizes:
        for kind, taste in (("alike", ALIKE), ("mixed", MIXED)):
            rng = Random(SEED)
            sized = replace(taste, nodes=size)
            snapshot: Snapshot = random_snapshot(rng, sized)
            request = Allocate(instance=random_demand(rng, sized, "new.x"))
            cold = milliseconds(partial(survey_afresh, snapshot, request), 3)
            model = ClusterModel(snapshot)
            warm = milliseconds(partial(survey, model, request), 9)
            row = f"{size:6} {kind:>6} {len(snapshot.instances):9} {cold:8.1f} {warm:8.1f}"
            if size == 100:
                many = milliseconds(partial(one_after_the_other, model, request, 50), 3)
                row += f" {many:8.1f} for 50"
            print(row, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time placements beside Debian's hail.")
    parser.add_argument("--quick", action="store_true", help="a few cases only")
    parser.add_argument("--full", action="store_true", help="Debian's at 1,000 nodes, too: 1 min")
    parser.add_argument("--sizes", nargs="*", type=int, default=[50, 100, 200, 1000, 2000])
    options = parser.parse_args()
    cases = [case for case in CASES if not options.quick or (case.kind, case.nodes) in QUICK]
    print(f"seed {SEED}; cpu and wall in seconds, memory in MiB")
    floor()
    print(
        f"{'nodes':>6} {'request':>21} {'cpu':>7} {'wall':>7} {'MiB':>5} {'hail cpu':>7}"
        f" {'wall':>6} {'x cpu':>7} {'x wall':>7} {'aim':>6}"
    )
    for case in cases:
        is_patient = options.full and case.kind == "pair" and case.nodes == 1000
        compare(replace(case, theirs=True) if is_patient else case)
    print("in-process, milliseconds of processor time")
    print(f"{'nodes':>6} {'kind':>6} {'instances':>9} {'opening':>8} {'next':>8}")
    inside(options.sizes)


if __name__ == "__main__":
    main()
