"""Measure a program: run it so many times, print medians as JSON.

    python -I tests/bench/took.py TIMES PROGRAM [ARGUMENT ...]

A process of its own, and a small one: what a child may say of its memory begins with that of the
process it came from.
"""

import json
import os
import sys
import time


def once(argv: list[str]) -> tuple[float, float, int]:
    """Processor and wall time in seconds, and the most memory in MiB."""
    start = time.perf_counter()
    nowhere = os.open(os.devnull, os.O_RDWR)
    actions = [(os.POSIX_SPAWN_DUP2, nowhere, stream) for stream in (0, 1, 2)]
    child = os.posix_spawn(argv[0], argv, os.environ, file_actions=actions)
    _, status, usage = os.wait4(child, 0)
    os.close(nowhere)
    if status:
        sys.exit(f"{argv} ended with status {os.waitstatus_to_exitcode(status)}")
    wall = time.perf_counter() - start
    return usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss >> 10


def measure() -> None:
    taken = [once(sys.argv[2:]) for _ in range(int(sys.argv[1]))]
    cpu, wall, memory = (sorted(column) for column in zip(*taken, strict=True))
    middle = len(taken) // 2
    print(json.dumps({"cpu": cpu[middle], "wall": wall[middle], "memory": memory[-1]}))


if __name__ == "__main__":
    measure()
