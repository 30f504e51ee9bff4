"""The lock table against a slow and obvious one, on whatever comes to Hypothesis's mind."""

import random
from collections.abc import Iterable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from coordinator.locks.names import ALL, Level, LockName, Mode, Owner, Wanted
from coordinator.locks.table import PATIENCE, LockTable, Taken, Waiter
from tests.support.seeds import examples

NAMES = [
    LockName(level, name) for level in (Level.INSTANCE, Level.NODE) for name in ("a", "b", "c", ALL)
]
SINGLE = [name for name in NAMES if not name.is_all]


def collide(one: Iterable[tuple[LockName, Mode]], other: Iterable[tuple[LockName, Mode]]) -> bool:
    theirs = list(other)
    return any(
        Mode.EXCLUSIVE in (mode, their_mode)
        and lock.level == theirs_lock.level
        and (lock == theirs_lock or lock.is_all or theirs_lock.is_all)
        for lock, mode in one
        for theirs_lock, their_mode in theirs
    )


def wanted() -> st.SearchStrategy[Wanted]:
    locks = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(Mode), max_size=5)
    return st.builds(Wanted, locks)


class Jobs(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.table = LockTable(on_grant=self.granted)
        self.holding: dict[Owner, Taken] = {}
        self.waiting: dict[Owner, Waiter] = {}
        self.urgent: set[Waiter] = set()  # before the present grant
        self.number = 0

    @rule(wanted=wanted(), priority=st.sampled_from([-20, -19, -18, 0, 19]))
    def ask(self, wanted: Wanted, priority: int) -> None:
        self.number += 1
        owner = Owner(f"job {self.number}")
        before = {each: waiter.passed for each, waiter in self.waiting.items()}
        self.table.request(owner, wanted, priority=priority)
        if waiter := self.table.waiter(owner):
            self.waiting[owner] = waiter
            assert before == {each: self.waiting[each].passed for each in before}
        else:
            self.check_grant(owner, wanted)

    @precondition(lambda self: self.holding or self.waiting)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        owner = data.draw(st.sampled_from([*self.holding, *self.waiting]))
        self.holding.pop(owner, None)
        self.waiting.pop(owner, None)
        self.table.release(owner)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), priority=st.sampled_from([-20, 0]))
    def change_priority(self, data: st.DataObject, priority: int) -> None:
        self.table.change_priority(data.draw(st.sampled_from(list(self.waiting))), priority)

    def granted(self, owner: Owner) -> None:
        waiter = self.waiting.pop(owner)
        taken = self.check_grant(owner, Wanted(waiter.claims))
        for other in self.urgent.intersection(self.waiting.values()):
            if other.goes_before(waiter):
                assert not collide(taken.items(), other.claims.items()), "passed an urgent one"
        self.note_urgent()

    def check_grant(self, owner: Owner, wanted: Wanted) -> Taken:
        taken = self.table.holding(owner)
        assert taken is not None
        assert taken == wanted.locks
        self.holding[owner] = taken
        return taken

    @invariant()
    def note_urgent(self) -> None:
        self.urgent = {waiter for waiter in self.waiting.values() if waiter.urgent}

    @invariant()
    def nobody_holds_what_another_holds(self) -> None:
        holdings = list(self.holding.items())
        for place, (owner, locks) in enumerate(holdings):
            assert self.table.holding(owner) == locks
            for _, others in holdings[:place]:
                assert not collide(locks.items(), others.items())

    @invariant()
    def nobody_waits_without_need(self) -> None:
        for owner, waiter in self.waiting.items():
            assert self.table.waiter(owner) is waiter
            lacking = [
                (lock, mode)
                for lock, mode in waiter.claims.items()
                if self.is_lacking(waiter, lock, mode)
            ]
            assert lacking
            assert [lock for lock, *_ in self.table.obstacles(waiter)] == [
                lock for lock, _ in lacking
            ]

    def is_lacking(self, waiter: Waiter, lock: LockName, mode: Mode) -> bool:
        return any(
            collide([(lock, mode)], locks.items()) for locks in self.holding.values()
        ) or any(
            other.goes_before(waiter) and collide([(lock, mode)], other.claims.items())
            for other in self.waiting.values()
        )

    @invariant()
    def whoever_was_passed_by_often_is_urgent(self) -> None:
        for waiter in self.waiting.values():
            assert waiter.urgent or waiter.passed < PATIENCE + waiter.priority

    @invariant()
    def nothing_leaks(self) -> None:
        used = {lock for locks in self.holding.values() for lock in locks}
        assert set(self.table.held.names()) == used
        claimed = {lock for waiter in self.waiting.values() for lock in waiter.claims}
        assert set(self.table.wanted.names()) == claimed
        watched = {
            lock: set(waiters)
            for locks in self.table._watchers.values()
            for lock, waiters in locks.items()
        }
        assert all(watched.values())
        assert set().union(*watched.values()) == set(self.waiting.values())

    def teardown(self) -> None:
        for owner in [*self.waiting, *self.holding]:
            self.waiting.pop(owner, None)
            self.holding.pop(owner, None)
            self.table.release(owner)
        self.nothing_leaks()


Jobs.TestCase.settings = settings(max_examples=examples(50), stateful_step_count=40)
TestJobs = Jobs.TestCase


@pytest.mark.parametrize("seed", range(5))
def test_nobody_starves(seed: int) -> None:
    """All locks are always busy, younger jobs keep coming, and each job gets its turn."""
    draw = random.Random(seed)
    asked_at: dict[Owner, int] = {}
    longest = 0

    def granted(owner: Owner) -> None:
        nonlocal longest
        longest = max(longest, step - asked_at.pop(owner))
        running.append(owner)

    table = LockTable(on_grant=granted)
    running: list[Owner] = []
    for step in range(3_000):
        if len(running) + len(asked_at) < 30:
            owner = Owner(f"job {step}")
            count = draw.choice([1, 1, 1, 2, len(SINGLE)])
            locks = dict.fromkeys(draw.sample(SINGLE, count), draw.choice(list(Mode)))
            if draw.random() < 0.05:
                locks = {LockName(Level.NODE, ALL): Mode.EXCLUSIVE}
            asked_at[owner] = step
            table.request(owner, Wanted(locks), priority=draw.choice([-10, 0, 10, 19]))
            if table.holding(owner) is not None:
                granted(owner)
        if running and draw.random() < 0.7:
            table.release(running.pop(draw.randrange(len(running))))
    assert longest < 1_000
