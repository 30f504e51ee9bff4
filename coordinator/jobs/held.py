"""Which jobs are kept from beginning by rules and limits: a small book."""

from collections import defaultdict
from collections.abc import Iterable

from common.model.filter_rule import FilterRule
from common.model.job import Job
from common.names import JobId
from coordinator.jobs.filtering import Chain
from coordinator.jobs.limits import Limit, key_of, limits_of
from coordinator.jobs.line import Line, Rank


class Held:
    """Who waits for a rule or a limit, and who runs within it.

    What rules and limits look at never changes while a job is there, so each is looked at once.
    A job that is held stands in the line of one limit that is full, so whenever one has room,
    nobody is in its line.
    """

    def __init__(self) -> None:
        self._chain = Chain(())
        self._applying: dict[JobId, FilterRule | None] = {}
        self._limits: dict[JobId, tuple[Limit, ...]] = {}
        self._held: dict[JobId, tuple[Limit, Rank]] = {}
        self._lines: defaultdict[str, Line] = defaultdict(Line)  # by the key of a limit
        self._begun: defaultdict[str, set[JobId]] = defaultdict(set)  # likewise

    def use(self, rules: Iterable[FilterRule], begun: Iterable[Job]) -> list[JobId]:
        """Apply other rules from now on; return the jobs that were held, which none is now.

        Args:
            rules: in any order.
            begun: the jobs that run: they go on, and count.
        """
        self._chain = Chain(rules)
        held = list(self._held)
        for book in (self._applying, self._limits, self._held, self._lines, self._begun):
            book.clear()
        for job in begun:
            self.note_begun(job)
        return held

    def applying(self, job: Job) -> FilterRule | None:
        """Return the rule that decides about a job, if any does."""
        if job.id not in self._applying:
            self._applying[job.id] = self._chain.applying(job)
        return self._applying[job.id]

    def may_begin(self, job: Job, rank: Rank) -> bool:
        """Tell whether a job may begin now; one that may not is held, and waits in this order."""
        limits = self._limits_of(job)
        if (full := self._full(job.id, limits)) is None:
            return True
        self._wait(job.id, full, rank)
        return False

    def note_begun(self, job: Job) -> None:
        """Count a job that begins, whatever the rules say."""
        self._count(job.id, self._limits_of(job))

    def holds(self, job: JobId) -> Limit | None:
        """Return what a job waits for, if it does."""
        return self._held[job][0] if job in self._held else None

    def let_go(self, job: JobId) -> bool:
        """Hold a job no more; tell whether it was held."""
        if job not in self._held:
            return False
        limit, _ = self._held.pop(job)
        self._lines[key_of(limit)].leave(job)
        return True

    def ended(self, job: JobId) -> list[JobId]:
        """Note the end of a job; return those that there is room for now.

        These are held no more, and have their room, although they have not begun.
        """
        self.let_go(job)
        self._applying.pop(job, None)
        limits = self._limits.pop(job, ())
        for limit in limits:
            self._begun[key_of(limit)].discard(job)
        released = [each for limit in limits for each in self._release(limit)]
        for key in map(key_of, limits):  # reasons come and go with jobs, and are many
            if not self._begun[key]:
                self._begun.pop(key)
                self._lines.pop(key, None)
        return released

    def _limits_of(self, job: Job) -> tuple[Limit, ...]:
        if job.id not in self._limits:
            self._limits[job.id] = limits_of(job, self.applying(job))
        return self._limits[job.id]

    def _full(self, job: JobId, limits: Iterable[Limit]) -> Limit | None:
        """Return the first limit that has no room for a job, if there is one."""
        for limit in limits:
            begun = self._begun[key_of(limit)]
            if job not in begun and len(begun) >= limit.limit:
                return limit
        return None

    def _wait(self, job: JobId, full: Limit, rank: Rank) -> None:
        self._held[job] = full, rank
        self._lines[key_of(full)].put(job, rank)

    def _count(self, job: JobId, limits: Iterable[Limit]) -> None:
        for limit in limits:
            self._begun[key_of(limit)].add(job)

    def _release(self, limit: Limit) -> Iterable[JobId]:
        """Hold no more who has room in all limits; others go on waiting at what is full."""
        key = key_of(limit)
        while len(self._begun[key]) < limit.limit and (job := self._lines[key].pop()) is not None:
            _, rank = self._held.pop(job)
            if full := self._full(job, self._limits[job]):
                self._wait(job, full, rank)
            else:
                self._count(job, self._limits[job])
                yield job
