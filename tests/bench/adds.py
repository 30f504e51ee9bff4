"""Twenty ``gnt-instance add`` commands at the same time, and where their time goes."""

import json
import os
import resource
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from tests.bench.trio import Machine, cpu_s, trio

COMMANDS, ROUNDS = 20, 3
KIND = ("-t", "diskless", "--no-nics", "--no-start", "-B", "memory=32M")


def main() -> None:
    with trio() as machines:
        master = machines[0]
        print(f"{os.cpu_count()} processors for the commands, the coordinator and 3 noded")
        print(f"  {COMMANDS} commands at once that only start      {start_s(master):6.2f} s")
        (coordinator,) = master.processes("gantry-coordinator")
        for turn in range(ROUNDS):
            before = cpu_s(coordinator)
            wall, commands = adds_s(master, turn)
            used = cpu_s(coordinator) - before
            print(
                f"  {COMMANDS} commands at once that add an instance {wall:6.2f} s; "
                f"processor time: {commands:.2f} s commands, {used:.2f} s coordinator"
            )
        print(f"  one command                                {one_s(master):6.2f} s")
        print(f"  batch-create of {COMMANDS}                         {batch_s(master):6.2f} s")


def start_s(master: Machine) -> float:
    """Commands that are refused before they ask anybody: what it costs to come to life."""
    return together(master, *[add("x", "--priority", "99")] * COMMANDS, code=2)


def adds_s(master: Machine, turn: int) -> tuple[float, float]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall = together(master, *(add(f"web{turn}-{n}") for n in range(COMMANDS)))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    clear(master)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def one_s(master: Machine) -> float:
    took = statistics.median(together(master, add(f"one{n}")) for n in range(5))
    clear(master)
    return took


def clear(master: Machine) -> None:
    """Remove all instances: no more than these fit."""
    master.run("gnt-instance", "remove", "--all", "--force", "--force-multiple")


def batch_s(master: Machine) -> float:
    wanted = [
        {"instance_name": f"batch{n}", "disk_template": "diskless", "start": False,
         "beparams": {"memory": 32}}
        for n in range(COMMANDS)
    ]  # fmt: skip
    file = Path(str(master.paths.root)) / "batch.json"
    file.write_text(json.dumps(wanted), encoding="utf-8")
    return together(master, ("gnt-instance", "batch-create", str(file)))


def add(name: str, *more: str) -> tuple[str, ...]:
    return ("gnt-instance", "add", *KIND, *more, name)


def together(master: Machine, *commands: Sequence[str], code: int = 0) -> float:
    """Start commands, and return the seconds until the last one has ended.

    Raises:
        RuntimeError: one ends with another exit code than it should.
    """
    began = time.perf_counter()
    for process in [master.begin(*words) for words in commands]:
        said, _ = process.communicate()
        if process.returncode != code:
            raise RuntimeError(f"A command ended with {process.returncode}: {said}")
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
