"""Jobs that rules hold are let go as soon as they may be, and never more than may run."""

from collections import defaultdict
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.model.filter_rule import Action, FilterRule
from common.model.job import Job, OperationRecord
from common.names import FilterId, JobId
from coordinator.jobs.held import Held
from coordinator.jobs.limits import ReasonLimit
from coordinator.jobs.line import Rank

RANK = Rank(may_wait=True, priority=0)


def job(number: int, *reasons: str) -> Job:
    given = {"reason": [["gnt:user", reason, 1] for reason in reasons]}
    return Job(id=JobId(number), ops=(OperationRecord(input=given, summary=""),), received=0.0)


def limited(limit: int, uuid: str = "a", parity: int | None = None) -> FilterRule:
    """Limit all jobs, or those of even or odd numbers from 0 to 9."""
    numbers = ["|", *(["=", "id", n] for n in range(10) if n % 2 == parity)]
    return FilterRule(
        uuid=FilterId(uuid),
        watermark=JobId(0),
        predicates=() if parity is None else (("jobid", numbers),),
        action=Action.RATE_LIMIT,
        limit=limit,
    )


def test_the_more_important_of_those_held_is_let_go_first() -> None:
    held = Held()
    held.use([limited(1)], begun=[job(1)])
    assert not held.may_begin(job(2), RANK)
    assert not held.may_begin(job(3), RANK._replace(priority=-5))
    assert held.holds(JobId(2)) == limited(1)
    assert held.ended(JobId(1)) == [3]
    assert held.holds(JobId(3)) is None
    assert held.ended(JobId(3)) == [2]


def test_who_was_let_go_and_ends_before_it_begins_leaves_its_room_to_the_next() -> None:
    held = Held()
    held.use([limited(1)], begun=[job(1)])
    assert not any(held.may_begin(job(number), RANK) for number in (2, 3, 4))
    assert held.let_go(JobId(2))
    assert held.ended(JobId(1)) == [3]
    assert held.ended(JobId(3)) == [4]


def test_other_rules_let_all_go_and_count_who_runs() -> None:
    held = Held()
    held.use([limited(1)], begun=[job(1)])
    assert not held.may_begin(job(2), RANK)
    assert held.use([limited(2)], begun=[job(1)]) == [2]
    assert held.may_begin(job(2), RANK)
    held.note_begun(job(2))
    assert not held.may_begin(job(3), RANK)
    assert held.use([], begun=[job(1), job(2)]) == [3]
    assert held.may_begin(job(3), RANK)


@given(st.integers(1, 3), st.integers(1, 3), st.integers())
def test_no_limit_is_passed_and_no_room_is_left_while_jobs_wait(
    even: int, odd: int, seed: int
) -> None:
    chance, held = Random(seed), Held()
    rules = [limited(even, "a", 0), limited(odd, "b", 1)]
    held.use(rules, begun=[])
    ready = [JobId(number) for number in range(10)]
    chance.shuffle(ready)
    running: dict[int, set[JobId]] = defaultdict(set)
    while ready or any(running.values()):
        if ready and chance.random() < 0.7:
            number = ready.pop()
            if held.may_begin(job(number), RANK):
                held.note_begun(job(number))
                running[number % 2].add(number)
        elif going := sorted(running[0] | running[1]):
            number = chance.choice(going)
            running[number % 2].discard(number)
            ready += held.ended(number)
        assert len(running[0]) <= even
        assert len(running[1]) <= odd
    assert not any(held.holds(JobId(number)) for number in range(10))


def test_jobs_of_a_reason_that_limits_wait_for_one_another_and_for_no_others() -> None:
    held = Held()
    assert held.may_begin(job(1, "rate-limit:1:copies"), RANK)
    held.note_begun(job(1, "rate-limit:1:copies"))
    assert not held.may_begin(job(2, "rate-limit:1:copies"), RANK)
    assert held.holds(JobId(2)) == ReasonLimit("rate-limit:1:copies", 1)
    others = ["rate-limit:2:copies", "rate-limit:1:other", "rate-limit:1", "copies", "rate-limit:"]
    assert all(held.may_begin(job(3, reason), RANK) for reason in others)
    assert held.ended(JobId(1)) == [2]


@pytest.mark.parametrize(
    "reason",
    [" rate-limit:1:x", "rate-limit:0:x", "rate-limit:-1:x", "rate-limit:one:x", "rate-limit::x",
     "1", "1:x", "rate-limit:²:x", f"rate-limit:{'9' * 5000}:x", "Rate-Limit:1:x"],
)  # fmt: skip
def test_a_reason_of_another_form_limits_nothing(reason: str) -> None:
    held = Held()
    held.note_begun(job(1, reason))
    assert held.may_begin(job(2, reason), RANK)


def test_a_rule_that_accepts_leaves_the_limits_of_reasons_alone() -> None:
    held = Held()
    accept = FilterRule(uuid=FilterId("a"), watermark=JobId(0), action=Action.ACCEPT)
    held.use([accept], begun=[job(1, "rate-limit:1:x")])
    assert not held.may_begin(job(2, "rate-limit:1:x"), RANK)


@given(st.integers(1, 2), st.integers())
def test_who_waits_for_several_limits_keeps_no_others_from_room_that_there_is(
    limit: int, seed: int
) -> None:
    chance, held = Random(seed), Held()
    reasons = [f"rate-limit:{most}:{word}" for word in "ab" for most in (1, 2)]
    held.use([limited(limit, parity=0)], begun=[])
    given_to = {n: chance.sample(reasons, chance.randrange(4)) for n in range(10)}
    buckets = {reason: {n for n in given_to if reason in given_to[n]} for reason in reasons}
    most = {reason: int(reason.split(":")[1]) for reason in reasons} | {"rule": limit}
    buckets["rule"] = {n for n in range(10) if n % 2 == 0}
    ready, running = [JobId(number) for number in range(10)], set[JobId]()
    chance.shuffle(ready)
    while ready or running:
        if ready and chance.random() < 0.7:
            number = ready.pop()
            if held.may_begin(job(number, *given_to[number]), RANK):
                held.note_begun(job(number, *given_to[number]))
                running.add(number)
        elif running:
            number = chance.choice(sorted(running))
            running.discard(number)
            ready += held.ended(number)
        full = {name for name in buckets if len(buckets[name] & running) >= most[name]}
        assert all(len(buckets[name] & running) <= most[name] for name in buckets)
        waiting = [JobId(n) for n in range(10) if held.holds(JobId(n))]
        promised = running | set(ready)  # those that were let go have their room
        full |= {name for name in buckets if len(buckets[name] & promised) >= most[name]}
        assert all(any(n in buckets[name] for name in full) for n in waiting)
    assert not any(held.holds(JobId(number)) for number in range(10))
