"""The only states a replica may be found in after a crash, and processes that crash."""

import os
from collections.abc import Callable
from pathlib import Path
from random import Random

from common.model.stamp import Stamp
from common.names import Epoch, Serial
from noded.replica.store import ReplicaFile
from tests.support.replicas import Key, carry_out, history, row

COMMITS = history(12, Random(1))
ROWS = tuple(row(("disk", str(number)), b'{"copied":true}') for number in range(40))
COPY = Stamp(epoch=Epoch(2), serial=Serial(99), digest="cd" * 32)
SURVIVED, DIED = 0, 9


def states() -> dict[Stamp, dict[Key, bytes]]:
    """Return the only states that may ever be found, by their stamps."""
    found, rows = {Stamp(): dict[Key, bytes]()}, dict[Key, bytes]()
    for commit in COMMITS:
        carry_out(rows, commit)
        found[commit.stamp] = dict(rows)
    found[COPY] = {(each.kind, each.id): bytes(each.body) for each in ROWS}
    return found


STATES = states()


def contents(path: Path) -> tuple[Stamp, dict[Key, bytes]]:
    replica = ReplicaFile(path)
    page = replica.read(None, 1000)
    assert replica.stamp() == page.stamp
    replica.close()
    return page.stamp, {(each.kind, each.id): bytes(each.body) for each in page.rows}


def check_whole(path: Path) -> Stamp:
    """Check that the replica is in one of the states, and return which."""
    stamp, rows = contents(path)
    assert rows == STATES[stamp]
    return stamp


def in_child(work: Callable[[], None]) -> int:
    """Do ``work`` in a forked process; return how it ended."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:  # noqa: BLE001 -- pytest must not go on in the child
            os._exit(1)
        os._exit(SURVIVED)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
