"""Moves made: each set of jobs submitted over LUXI and waited for, until done or told to stop."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType

from common.errors import Conflict
from common.luxi.client import Client
from coordinator.allocator.balance import Move
from coordinator.allocator.inventory import Inventory
from coordinator.htools.jobsets import opcodes
from coordinator.htools.luxi_source import socket_path

_FINISHED = frozenset({"success", "error", "canceled"})
_POLL_S = 0.5


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)


class _Stop:
    """Asked to stop by the first interrupt; the second ends the program at once."""

    def __init__(self) -> None:
        self.is_asked = False

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        if self.is_asked:
            raise KeyboardInterrupt
        self.is_asked = True
        sys.stderr.write("Stopping after the jobs under way; interrupt again to leave them.\n")


def execute(
    path: str,
    cluster: Inventory,
    sets: Sequence[Sequence[Move]],
    *,
    reason: str,
    pause: Callable[[float], None] = _pause,
) -> None:
    """Submit the sets one after the other, each when all jobs of the one before succeeded.

    Args:
        path: of the LUXI socket; empty for this node's coordinator.
        cluster: what the moves' indices refer to.
        sets: moves that may run side by side.
        reason: recorded with each operation.
        pause: waits so many seconds between looks at the jobs.

    Raises:
        Conflict: a job failed, or the operator interrupted; names the jobs.
    """
    client, stop = Client(socket_path(path)), _Stop()
    before = signal.signal(signal.SIGINT, stop)
    try:
        for at, moves in enumerate(sets, 1):
            if stop.is_asked:
                raise Conflict(f"Stopped before job set {at} of {len(sets)}.")
            jobs = _submit(client, cluster, moves, reason)
            sys.stdout.write(f"Job set {at} of {len(sets)}: jobs {', '.join(map(str, jobs))}\n")
            _wait(client, jobs, pause)
    finally:
        signal.signal(signal.SIGINT, before)
        client.close()


def _submit(client: Client, cluster: Inventory, moves: Sequence[Move], reason: str) -> list[int]:
    trail = [["hbal", reason, time.time_ns()]]
    told = client.call(
        "SubmitManyJobs",
        [[{**opcode, "reason": trail} for opcode in opcodes(move, cluster)] for move in moves],
    )
    refused = [str(answer) for accepted, answer in told if not accepted]
    if refused:
        raise Conflict(f"Some jobs were not accepted: {'; '.join(refused)}.")
    return [int(answer) for _, answer in told]


def _wait(client: Client, jobs: Sequence[int], pause: Callable[[float], None]) -> None:
    left = list(jobs)
    failed: list[int] = []
    while left:
        rows = client.call("QueryJobs", left, ["id", "status"])
        for job, status in rows:
            if status in _FINISHED:
                left.remove(int(job))
                sys.stdout.write(f"Job {job}: {status}\n")
                if status != "success":
                    failed.append(int(job))
        if left:
            pause(_POLL_S)
    if failed:
        names = ", ".join(map(str, failed))
        raise Conflict(f"Not all jobs succeeded ({names}); what was to follow is left undone.")
