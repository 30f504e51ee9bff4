"""hbal and hspace against Debian's, both programs in one run.

Of hbal the time of one move; of hspace that of the whole process, on an empty cluster.

python -m tests.bench.htools [NODES ...]
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

import numpy as np

from coordinator.allocator.balancing.balance import Balance
from coordinator.allocator.balancing.moves import Limits
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.htools.text import parse_cluster
from tests.diff.both import find
from tests.diff.text_clusters import Taste, random_text

MOVES = 5
THEIRS_UP_TO = 100  # nodes; with more, theirs takes minutes for a move


def ours(text: str) -> float:
    """Median seconds of CPU for one move."""
    cluster = parse_cluster(text)
    balance = Balance(ClusterModel(cluster), np.arange(len(cluster.nodes)), Limits())
    moves, seconds = balance.moves(), []
    for _ in range(MOVES):
        start = time.process_time()
        next(moves, None)
        seconds.append(time.process_time() - start)
    return float(np.median(seconds))


def theirs(program: str, text: str) -> float:
    """Seconds of CPU for one move: that of a run with one, less that of a run with none."""

    def run(moves: int) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([program, "-t", path, "-l", str(moves)], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory) / "cluster.data")
        Path(path).write_text(text, encoding="utf-8")
        return run(1) - run(0)


def seconds_of(command: list[str]) -> float:
    """Seconds of CPU that a process takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def tell_hspace(size: int) -> None:
    """Fill an empty cluster; a median of three of ours beside one of theirs."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "cluster.data"
        text = random_text(Random(size), Taste(nodes=size, per_node=0))
        path.write_text(text, encoding="utf-8")
        words = ["-t", str(path), "--disk-template=drbd"]
        start = [sys.executable, "-c", "from coordinator.htools.hspace import main; main()"]
        mine = float(np.median([seconds_of([*start, *words]) for _ in range(3)]))
        line = f"hspace, {size} nodes: {mine:.2f} s"
        program = find("hspace")
        if program and size <= THEIRS_UP_TO:
            other = seconds_of([program, *words])
            line += f"; Debian's {other:.1f} s, {other / mine:.0f} times as long"
        print(line, flush=True)


def main() -> None:
    """Print a line per size."""
    program = find("hbal")
    for size in [int(word) for word in sys.argv[1:]] or [50, 100, 200, 500]:
        text = random_text(Random(size), Taste(nodes=size, per_node=10))
        mine = ours(text)
        line = f"hbal, {size} nodes, {text.count('|drbd|')} instances: {mine * 1000:.0f} ms a move"
        if program and size <= THEIRS_UP_TO:
            other = theirs(program, text)
            line += f"; Debian's {other:.2f} s, {other / mine:.0f} times as long"
        print(line, flush=True)
        tell_hspace(size)


if __name__ == "__main__":
    main()
