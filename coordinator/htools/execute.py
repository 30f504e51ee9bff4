"""Moves made: each set of jobs submitted over LUXI and waited for, until done or told to stop."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from common.errors import Conflict, InvalidRequest
from common.luxi.client import Client, ConnectionLost, NoCoordinator
from common.luxi.failures import from_ganeti
from coordinator.allocator.balancing.balance import Move
from coordinator.allocator.snapshot import Snapshot
from coordinator.htools.jobsets import describe
from coordinator.htools.luxi_source import socket_path
from coordinator.htools.output import say, tell
from coordinator.htools.stopping import Stop, stopping
from coordinator.iallocator.balancing import opcodes_of

Job = Sequence[Mapping[str, object]]
"""Opcodes, which run one after the other."""

_FINISHED = frozenset({"success", "error", "canceled"})
_POLL_S = 0.5
_PATIENCE_S = 60.0  # with a coordinator that is restarted; the jobs survive that


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)


def jobs_of(sets: Sequence[Sequence[Move]], cluster: Snapshot) -> list[list[Job]]:
    """The jobs that make moves, whose indices refer to ``cluster``, in the same sets."""
    return [[opcodes_of(move, cluster) for move in moves] for moves in sets]


def run_jobs(
    path: str | None,
    sets: Sequence[Sequence[Job]],
    *,
    program: str,
    reason: str,
    priority: int | None = None,
) -> None:
    """Submit the sets one after the other, each when all jobs of the one before succeeded.

    SIGINT or SIGTERM ends this after the set under way, without an error if its jobs succeed.

    Args:
        path: of the LUXI socket; empty for this node's coordinator, None if none was named.
        sets: jobs that may run side by side.
        program: recorded with each operation, as who asked for it.
        reason: recorded as why.
        priority: of the jobs, from -20 (first) to 19; None for the ordinary one.

    Raises:
        InvalidRequest: no socket was named.
        Conflict: a job was refused or failed; names each and its instance.
        Cancelled: a second signal came.
        GntError: the coordinator cannot be asked.
    """
    if path is None:
        raise InvalidRequest(f"{program}: Execution of commands possible only on LUXI")
    common: dict[str, object] = {"reason": [[program, reason, time.time_ns()]]}
    if priority is not None:
        common["priority"] = priority
    with Client(socket_path(path)) as client, stopping() as stop:
        for at, jobs in enumerate(sets, 1):
            if stop.is_asked:
                tell(f"Stopped before job set {at} of {len(sets)}, as asked to.")
                return
            annotated = [[{**opcode, **common} for opcode in job] for job in jobs]
            _JobSet(client, annotated).run(f"Job set {at} of {len(sets)}", stop)


class _JobSet:
    """Jobs side by side, from their submission until they have all ended."""

    def __init__(self, client: Client, jobs: Sequence[Job]) -> None:
        self._client, self._jobs = client, jobs
        self._names: dict[int, str] = {}  # what each job does, by its number
        self._failures: list[str] = []

    def run(self, title: str, stop: Stop) -> None:
        self._submit()
        if self._names:
            numbers = ", ".join(map(str, self._names))
            stop.advice = f" Jobs go on by themselves: {numbers}; “gnt-job list” shows them."
            say(f"{title}:")
            for number, name in self._names.items():
                say(f"  job {number}: {name}")
            self._wait()
            stop.advice = ""
        if self._failures:
            raise Conflict(" ".join([*self._failures, "What was to follow is left undone."]))

    def _submit(self) -> None:
        try:
            answers = self._client.call("SubmitManyJobs", [list(job) for job in self._jobs])
        except ConnectionLost as error:
            raise ConnectionLost(
                f"{error.message} Whether it took the jobs is unknown: look at “gnt-job list”"
                " before running this again."
            ) from error
        except InvalidRequest as error:  # one of them makes no sense, so that none was taken
            jobs = "; ".join(map(describe, self._jobs))
            self._failures.append(f"None of these jobs was accepted ({jobs}): {error.message}")
            return
        for job, (is_accepted, answer) in zip(self._jobs, answers, strict=True):
            if is_accepted:
                self._names[int(answer)] = describe(job)
            else:
                why = from_ganeti(answer).message
                self._failures.append(f"The job to {describe(job)} was not accepted: {why}")

    def _wait(self) -> None:
        shown: dict[int, str] = {}
        while len(left := [n for n in self._names if shown.get(n) not in _FINISHED]):
            for number, (status, *results) in zip(left, self._ask(left), strict=True):
                if status != shown.get(number):
                    shown[number] = status
                    say(f"  job {number}: {status}")
                    if status in _FINISHED and status != "success":
                        why = _why(status, *results)
                        name = self._names[number]
                        self._failures.append(f"Job {number}, to {name}, failed: {why}")
            if not all(shown.get(number) in _FINISHED for number in left):
                _pause(_POLL_S)

    def _ask(self, numbers: Sequence[int]) -> Iterator[list[Any]]:
        """Status and results of jobs; a coordinator that is away is waited for."""
        waited = 0.0
        while True:
            try:
                rows = self._client.call("QueryJobs", numbers, ["status", "opstatus", "opresult"])
            except (NoCoordinator, ConnectionLost):
                if waited >= _PATIENCE_S:
                    raise
                _pause(_POLL_S)
                waited += _POLL_S
            else:
                # A job that was archived meanwhile, or deleted, comes back as nothing.
                return (row or ["error", [], []] for row in rows)


def _why(status: str, opstatus: Sequence[str], opresult: Sequence[Any]) -> str:
    for one, result in zip(opstatus, opresult, strict=False):
        if one == "error":
            return from_ganeti(result).message
    return "it was cancelled." if status == "canceled" else "it does not say why."
