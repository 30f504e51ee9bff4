"""Which jobs filter rules keep from beginning: a small book."""

from collections import defaultdict
from collections.abc import Iterable

from common.model.filter_rule import Action, FilterRule
from common.model.job import Job
from common.names import FilterId, JobId
from coordinator.jobs.filtering import Chain
from coordinator.jobs.line import Line, Rank


class Held:
    """Who waits for a rule, and who runs within the limit of one.

    What rules look at never changes while a job is there, so each job is held to them once.
    """

    def __init__(self) -> None:
        self._chain = Chain(())
        self._applying: dict[JobId, FilterRule | None] = {}
        self._held: dict[JobId, FilterRule] = {}
        self._lines: defaultdict[FilterId, Line] = defaultdict(Line)  # of rules with a limit
        self._begun: defaultdict[FilterId, set[JobId]] = defaultdict(set)  # likewise

    def use(self, rules: Iterable[FilterRule], begun: Iterable[Job]) -> list[JobId]:
        """Apply other rules from now on; return the jobs that were held, which none is now.

        Args:
            rules: in any order.
            begun: the jobs that run: they go on, and count.
        """
        self._chain = Chain(rules)
        held = list(self._held)
        for book in (self._applying, self._held, self._lines, self._begun):
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
        rule = self.applying(job)
        if rule is None or rule.action is Action.ACCEPT or self._room(rule) > 0:
            return True
        self._held[job.id] = rule
        if rule.action is Action.RATE_LIMIT:
            self._lines[rule.uuid].put(job.id, rank)
        return False

    def note_begun(self, job: Job) -> None:
        """Count a job that begins, whatever the rules say."""
        rule = self.applying(job)
        if rule is not None and rule.action is Action.RATE_LIMIT:
            self._begun[rule.uuid].add(job.id)

    def holds(self, job: JobId) -> FilterRule | None:
        """Return the rule that a job waits for, if it does."""
        return self._held.get(job)

    def let_go(self, job: JobId) -> bool:
        """Hold a job no more; tell whether it was held."""
        rule = self._held.pop(job, None)
        if rule is not None:
            self._lines[rule.uuid].leave(job)
        return rule is not None

    def ended(self, job: JobId) -> list[JobId]:
        """Note the end of a job; return those that there is room for now, and hold them no more."""
        self.let_go(job)
        rule = self._applying.pop(job, None)
        if rule is None or rule.action is not Action.RATE_LIMIT:
            return []
        self._begun[rule.uuid].discard(job)
        released: list[JobId] = []
        while len(released) < self._room(rule):
            following = self._lines[rule.uuid].pop()
            if following is None:
                break
            del self._held[following]
            released.append(following)
        return released

    def _room(self, rule: FilterRule) -> int:
        """Return how many more jobs may run; of a rule without a limit, none."""
        return rule.limit - len(self._begun[rule.uuid])
