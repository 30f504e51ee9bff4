"""Who holds which locks, who waits, and who gets them next.

* An owner asks once, for all it needs, and gets all at once. Nobody holds some locks while
  waiting for others, so there is no deadlock, and no order in which to ask.
* A request that can be granted is granted, even if others wait longer: work goes on around
  whoever waits for a lot. When locks come free, the smallest priority goes first, then
  the oldest.
* That could starve a large request. So each one counts how often a younger one has taken locks
  that it waits for; when its patience (``PATIENCE`` plus its priority) is at an end it is
  *urgent*: from then on nobody takes a lock away from under it, except urgent ones that are
  older. The oldest urgent one waits for nothing but those who hold locks now, hence each one
  gets its turn.

Pure: no clock and no tasks. A request costs as much as it has locks, plus the number of
requests that it makes wait longer; a release looks at those that wait for just these locks.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from common.errors import Bug
from coordinator.locks.claims import Claims
from coordinator.locks.names import Level, LockName, Mode, Owner, Wanted

PATIENCE: Final = 20  # so many younger ones may pass a request of priority 0; none one of -20

Taken = dict[LockName, Mode]


class Waiter:
    """A request: what is wanted, and since when."""

    def __init__(self, owner: Owner, wanted: Wanted, priority: int, number: int) -> None:
        self.owner = owner
        self.priority = priority  # -20, the most important, to 19
        self.number = number  # counts requests: the smaller, the older
        self.passed = 0  # how often a younger one took what it waits for
        self.urgent = False  # nobody may pass it any more
        self.claims: Taken = dict(wanted.locks)
        self.watched: LockName | None = None

    @property
    def rank(self) -> tuple[bool, int, int]:
        """The smaller goes first when locks come free."""
        return not self.urgent, 0 if self.urgent else self.priority, self.number

    @property
    def is_out_of_patience(self) -> bool:
        return self.passed >= PATIENCE + self.priority

    def goes_before(self, other: "Waiter") -> bool:
        return self.urgent and (not other.urgent or self.number < other.number)


class LockTable:
    """The state of all locks; ``on_grant`` hears of each owner whose waiting has ended."""

    def __init__(self, on_grant: Callable[[Owner], None]) -> None:
        self.held: Claims[Owner] = Claims()
        self.wanted: Claims[Waiter] = Claims()
        self._urgent: Claims[Waiter] = Claims()
        self._holdings: dict[Owner, Taken] = {}
        self._waiting: dict[Owner, Waiter] = {}
        # Each waiter watches one lock that it can't have; until that one changes, there is no
        # need to look at it.
        self._watchers: dict[Level, dict[LockName, dict[Waiter, None]]] = {}
        self._on_grant = on_grant
        self._requests = 0

    def holding(self, owner: Owner) -> Taken | None:
        """Return what ``owner`` holds, or None while it holds nothing."""
        return self._holdings.get(owner)

    def waiter(self, owner: Owner) -> Waiter | None:
        return self._waiting.get(owner)

    def request(self, owner: Owner, wanted: Wanted, *, priority: int) -> None:
        """Take all that is wanted or, if it can't be had now, wait for it.

        Raises:
            Bug: ``owner`` already holds locks, or waits for some.
        """
        if owner in self._holdings or owner in self._waiting:
            raise Bug(f"{owner} asks for locks a second time; a job asks once for all it needs.")
        self._requests += 1
        waiter = Waiter(owner, wanted, priority, self._requests)
        lacking = self._lacking(waiter)
        if lacking is None:
            self._settle(self._take(waiter))
            return
        self._waiting[owner] = waiter
        for lock, mode in waiter.claims.items():
            self.wanted.add(waiter, lock, mode)
        self._hurry(waiter)
        self._watch(waiter, lacking)

    def release(self, owner: Owner) -> None:
        """Give up what ``owner`` holds or waits for, if anything."""
        if owner in self._waiting:
            self._settle(self._leave(self._waiting[owner]))
        elif owner in self._holdings:
            held = self._holdings.pop(owner)
            for lock, mode in held.items():
                self.held.remove(owner, lock, mode)
            self._settle(self._watching(held))

    def change_priority(self, owner: Owner, priority: int) -> None:
        """Change the priority of a request that waits."""
        waiter = self._waiting[owner]
        waiter.priority = priority
        if self._hurry(waiter):
            self._settle([waiter])

    def obstacles(self, waiter: Waiter) -> Iterator[tuple[LockName, list[Owner], list[Owner]]]:
        """Yield each lock that is not to be had, its holders, and urgent waiters before us."""
        for lock, mode in waiter.claims.items():
            holders = dict.fromkeys(self.held.against(lock, mode))
            before = dict.fromkeys(
                other.owner
                for other in self._urgent.against(lock, mode)
                if other.goes_before(waiter)
            )
            if holders or before:
                yield lock, list(holders), list(before)

    def _is_free(self, lock: LockName, mode: Mode, waiter: Waiter) -> bool:
        return not any(True for _ in self.held.against(lock, mode)) and not any(
            other.goes_before(waiter) for other in self._urgent.against(lock, mode)
        )

    def _lacking(self, waiter: Waiter) -> LockName | None:
        """Return a lock that keeps it waiting; None if it can have all."""
        claims = waiter.claims.items()
        return next((lock for lock, mode in claims if not self._is_free(lock, mode, waiter)), None)

    def _take(self, waiter: Waiter) -> list[Waiter]:
        """Give it what it lacks nothing of; return the waiters that may have a chance now."""
        taken = self._holdings[waiter.owner] = waiter.claims
        chances = self._leave(waiter) if waiter.owner in self._waiting else []
        passed: dict[Waiter, None] = {}
        for lock, mode in taken.items():
            self.held.add(waiter.owner, lock, mode)
            for other in self.wanted.against(lock, mode):
                if other.number < waiter.number:
                    passed[other] = None
        for other in passed:
            other.passed += 1
            if self._hurry(other):
                chances.append(other)
        return chances

    def _leave(self, waiter: Waiter) -> list[Waiter]:
        """Stop waiting; return those that were waiting behind it."""
        del self._waiting[waiter.owner]
        self._watch(waiter, None)
        for lock, mode in waiter.claims.items():
            self.wanted.remove(waiter, lock, mode)
            if waiter.urgent:
                self._urgent.remove(waiter, lock, mode)
        return self._watching(lock for lock in waiter.claims) if waiter.urgent else []

    def _hurry(self, waiter: Waiter) -> bool:
        """Make a waiter urgent whose patience is at an end; tell whether it has become so."""
        if waiter.urgent or not waiter.is_out_of_patience:
            return False
        waiter.urgent = True
        for lock, mode in waiter.claims.items():
            self._urgent.add(waiter, lock, mode)
        return True

    def _settle(self, chances: Iterable[Waiter]) -> None:
        """Grant what can be granted, best rank first, until nothing more can."""
        queue = [(waiter.rank, waiter.owner) for waiter in chances]
        heapq.heapify(queue)
        while queue:
            waiter = self._waiting.get(heapq.heappop(queue)[1])
            if waiter is None:
                continue
            if (lacking := self._lacking(waiter)) is not None:
                self._watch(waiter, lacking)
                continue
            for other in self._take(waiter):
                heapq.heappush(queue, (other.rank, other.owner))
            self._on_grant(waiter.owner)

    def _watch(self, waiter: Waiter, lock: LockName | None) -> None:
        """Have it looked at again when this lock changes, and not before."""
        if lock == waiter.watched:
            return
        if (old := waiter.watched) is not None:
            watchers = self._watchers[old.level]
            del watchers[old][waiter]
            if not watchers[old]:
                del watchers[old]
        waiter.watched = lock
        if lock is not None:
            self._watchers.setdefault(lock.level, {}).setdefault(lock, {})[waiter] = None

    def _watching(self, locks: Iterable[LockName]) -> list[Waiter]:
        found: dict[Waiter, None] = {}
        for lock in locks:
            level = self._watchers.get(lock.level, {})
            places = level if lock.is_all else (lock, lock.whole_level)
            for place in places:
                found.update(level.get(place, {}))
        return list(found)
