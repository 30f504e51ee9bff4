"""How long it takes from the death of the master to a new one.

Counted from ``gnt-cluster master-failover`` on: noticing and deciding is the operator's.
"""

import argparse
import signal
import sqlite3
import statistics
import time
from collections.abc import Callable
from contextlib import closing, suppress
from typing import NamedTuple

from common.errors import GntError
from common.paths import Paths
from tests.bench.trio import GANETI, PATIENCE_S, Machine, trio, wait_until

RUNS = 5
GANETI_S = 18.1  # the command, then the first answer


class Took(NamedTuple):
    """Seconds since the command was given."""

    confirmed: float  # its first commit is on this node's disk
    answers: float  # the first answer to a query
    ended: float  # the command


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    runs = parser.parse_args().runs
    print(f"three candidates, the master's node lost, median of {runs}, seconds after the command")
    print(f"  {'':30}{'confirmed':>10}{'answers':>10}{'ended':>10}")
    with trio() as machines:
        for title, lose in (
            ("killed (refuses connections)", lambda machine: machine.kill()),
            ("cut off (does not answer)", lambda machine: machine.signal(signal.SIGSTOP)),
        ):
            took = []
            for run in range(runs):
                old, new = machines[run % 3], machines[(run + 1) % 3]
                took.append(fail_over(old, new, lose))
                _come_back(old, new)
            for _ in range(-runs % 3):  # so that the first one is the master again
                run += 1
                fail_over(machines[run % 3], machines[(run + 1) % 3], lose)
                _come_back(machines[run % 3], machines[(run + 1) % 3])
            middle = Took(*map(statistics.median, zip(*took, strict=True)))
            print(
                f"  {title:30}"
                + "".join(f"{seconds:10.2f}" for seconds in middle)
                + f"   Ganeti took {GANETI_S / middle.answers:.0f} x as long to answer"
            )
    print(f"  {'':40}{GANETI_S:10}   {GANETI}")


def fail_over(old: Machine, new: Machine, lose: Callable[[Machine], None]) -> Took:
    """Lose ``old``, the master, and make ``new`` the master."""
    lose(old)
    log = new.paths.replica.with_name(f"{new.paths.replica.name}-wal")
    before = log.stat().st_mtime_ns if log.exists() else 0
    began = time.perf_counter()
    command = new.begin("gnt-cluster", "master-failover", "--port", str(new.port))
    wait_until(lambda: log.exists() and log.stat().st_mtime_ns != before, "a commit", 0.002)
    confirmed = time.perf_counter() - began
    wait_until(lambda: _answers(new), "an answer")
    answers = time.perf_counter() - began
    said, _ = command.communicate(timeout=PATIENCE_S)
    if command.returncode != 0:
        raise RuntimeError(f"master-failover failed: {said}")
    return Took(confirmed, answers, time.perf_counter() - began)


def _come_back(old: Machine, new: Machine) -> None:
    """Start the lost node again; return when it has caught up with the master."""
    old.kill()
    old.start_noded()
    wait_until(lambda: _serial(old.paths) == _serial(new.paths), f"{old.name} to catch up", 0.05)


def _answers(machine: Machine) -> bool:
    with suppress(GntError), machine.client() as client:
        client.call("QueryConfigValues", ["cluster_name"])
        return True
    return False


def _serial(paths: Paths) -> int:
    with closing(sqlite3.connect(paths.replica, timeout=10)) as db:
        serial: int = db.execute("SELECT serial FROM meta").fetchone()[0]
        return serial


if __name__ == "__main__":
    main()
