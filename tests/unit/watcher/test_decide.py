from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from coordinator.watcher.decide import (
    ATTEMPTS,
    HELD_S,
    MEMORY_S,
    PAUSES_S,
    Attempt,
    decide,
    next_attempt,
    spoken,
)

NAMES = ("web1", "web2", "web3")
TIMES = st.floats(0, 2e9)
ATTEMPT = st.builds(Attempt, st.sampled_from(NAMES), TIMES, TIMES)
ROUND_S = 30.0


def attempts_of(always_down_s: float) -> list[tuple[float, int]]:
    """Return when an instance that never starts is tried, and as which attempt in a row."""
    tried: list[Attempt] = []
    told: list[tuple[float, int]] = []
    now = 1000.0
    while now < 1000.0 + always_down_s:
        start, _ = decide(["web1"], tried[-20:], frozenset(), now)
        tried += [Attempt(each.instance, now, now + 2.0) for each in start]
        told += [(now, each.number) for each in start]
        now += ROUND_S
    return told


def test_what_is_down_for_the_first_time_is_started_at_once() -> None:
    start, leave = decide(["web1", "web2"], [], frozenset(), 1000.0)
    assert start == [("web1", 1), ("web2", 1)]
    assert leave == []


def test_what_never_starts_is_tried_ever_more_seldom_and_then_left_for_hours() -> None:
    tried = attempts_of(sum(PAUSES_S) + 600.0)[: ATTEMPTS + 1]
    assert [number for _, number in tried] == [1, 2, 3, 4, 5, 1]
    gaps = [later - earlier for (earlier, _), (later, _) in pairwise(tried)]
    for gap, pause in zip(gaps, PAUSES_S, strict=True):
        assert pause <= gap <= pause + 2 * ROUND_S


def test_in_days_of_failures_the_attempts_are_bounded() -> None:
    days = 3 * 86_400.0
    assert len(attempts_of(days)) <= (days / sum(PAUSES_S) + 1) * ATTEMPTS


def test_an_instance_that_ran_for_a_while_is_new_to_us() -> None:
    one = Attempt("web1", 1000.0, 1002.0)
    due = 1002.0 + PAUSES_S[0]
    assert next_attempt([one], 1003.0) == (2, due)
    assert next_attempt([one], due + HELD_S - 1) == (2, due)
    assert next_attempt([one], due + HELD_S) == (1, due)


def test_a_guest_that_turns_itself_off_after_each_start_is_given_up_too() -> None:
    tried: list[Attempt] = []
    now = 1000.0
    while len(tried) < ATTEMPTS:
        number, due = next_attempt(tried, now)
        assert number == len(tried) + 1
        now = max(now, due)
        tried.append(Attempt("web1", now, now + 2.0))  # it starts,
        now += 200.0  # and three minutes later it is down
    _, leave = decide(["web1"], tried, frozenset(), now)
    assert "started 5 times in vain" in leave[0].why
    assert "3 hours" in leave[0].why
    assert "gnt-instance startup web1" in leave[0].why


def test_what_a_job_works_on_is_left_to_it() -> None:
    start, leave = decide(["web1", "web2"], [], frozenset({"web1"}), 1000.0)
    assert [each.instance for each in start] == ["web2"]
    assert [each.instance for each in leave] == ["web1"]


def test_a_clock_that_was_put_back_forbids_nothing_for_ever() -> None:
    tomorrow = [Attempt("web1", 90_000.0, 90_001.0)] * ATTEMPTS
    assert next_attempt(tomorrow, 1000.0)[1] <= 1000.0
    during = [Attempt("web1", 999.0, 90_001.0)]
    assert next_attempt(during, 1000.0) == (2, 999.0 + PAUSES_S[0])


@given(
    st.lists(st.sampled_from(NAMES), unique=True),
    st.lists(ATTEMPT, max_size=30),
    st.frozensets(st.sampled_from(NAMES)),
    TIMES,
)
def test_each_instance_is_started_or_left_and_a_busy_one_is_left(
    down: list[str], attempts: list[Attempt], busy: frozenset[str], now: float
) -> None:
    start, leave = decide(down, attempts, busy, now)
    started, left = [each.instance for each in start], [each.instance for each in leave]
    assert sorted(started + left) == sorted(down)
    assert busy.isdisjoint(started)
    assert all(1 <= each.number <= ATTEMPTS for each in start)


@given(st.lists(ATTEMPT, max_size=30), TIMES)
def test_after_the_longest_pause_everything_may_be_tried(
    attempts: list[Attempt], now: float
) -> None:
    mine = [Attempt("web1", a.received, max(a.received, min(a.ended, now))) for a in attempts]
    _, due = next_attempt(mine, now)
    assert due <= now + PAUSES_S[-1]
    old = [a for a in mine if max(a.received, a.ended) < now - MEMORY_S]
    assert next_attempt(old, now) == (1, next_attempt(old, now)[1])


def test_spans_of_time_are_rounded_up() -> None:
    assert [spoken(s) for s in (0.5, 60, 61, 3600, 7200, 7201, 10_800)] == [
        "a minute", "a minute", "2 minutes", "60 minutes", "2 hours", "3 hours", "3 hours",
    ]  # fmt: skip
