"""Who of the jobs that are ready goes next, and which jobs are not ready: two small books."""

import heapq
from collections.abc import Iterable
from typing import NamedTuple

from common.names import JobId


class Rank(NamedTuple):
    """The smaller goes first; of equals the older job."""

    may_wait: bool  # False for a job that has its locks already: others wait for these
    priority: int  # -20, the most important, to 19


class Line:
    """The jobs that wait for a place to run; a job may leave, or change its rank, at any time."""

    def __init__(self) -> None:
        self._ranks: dict[JobId, Rank] = {}
        self._heap: list[tuple[Rank, JobId]] = []  # entries may be outdated; ``_ranks`` tells

    def __contains__(self, job: JobId) -> bool:
        return job in self._ranks

    def put(self, job: JobId, rank: Rank) -> None:
        """Have a job stand in line, or stand elsewhere in it."""
        self._ranks[job] = rank
        heapq.heappush(self._heap, (rank, job))

    def leave(self, job: JobId) -> None:
        """Take a job out of the line, if it is in it."""
        self._ranks.pop(job, None)

    def pop(self) -> JobId | None:
        """Take out the one that goes next; None if there is none."""
        while self._heap:
            rank, job = heapq.heappop(self._heap)
            if self._ranks.get(job) == rank:
                del self._ranks[job]
                return job
        return None

    def before(self, job: JobId) -> int:
        """Return how many go before one that is in the line."""
        mine = self._ranks[job], job
        return sum((rank, other) < mine for other, rank in self._ranks.items())


class Dependencies:
    """Which jobs wait for the end of which others; an end costs as many steps as wait for it."""

    def __init__(self) -> None:
        self._waits: dict[JobId, set[JobId]] = {}
        self._dependants: dict[JobId, list[JobId]] = {}

    def add(self, job: JobId, others: Iterable[JobId]) -> bool:
        """Have a job wait for the end of others; tell whether there is any."""
        waits = set(others)
        if waits:
            self._waits[job] = waits
        for other in waits:
            self._dependants.setdefault(other, []).append(job)
        return bool(waits)

    def of(self, job: JobId) -> list[JobId]:
        """Return the jobs that one still waits for."""
        return sorted(self._waits.get(job, ()))

    def ended(self, job: JobId) -> list[JobId]:
        """Note the end of a job; return those that wait for nothing any more."""
        self._waits.pop(job, None)
        ready = []
        for dependant in self._dependants.pop(job, ()):
            waits = self._waits.get(dependant)
            if waits is None:
                continue  # it has ended itself
            waits.discard(job)
            if not waits:
                del self._waits[dependant]
                ready.append(dependant)
        return ready
