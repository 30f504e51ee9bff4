import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import NodeFailure
from noded.monitor.cpu_load import WINDOW_S, Load, Samples, parse_stat

STAT = """\
cpu  100 10 50 900 30 5 5 20 40 4
cpu0 60 10 30 400 20 5 5 10 40 4
cpu1 40 0 20 500 10 0 0 10 0 0
intr 12345 6 7
ctxt 99
"""


def test_busy_is_neither_idle_nor_waiting_and_counts_guests_once() -> None:
    assert parse_stat(STAT) == (190, 120, 70)


@pytest.mark.parametrize("text", ["", "intr 5\n", "cpu 1 2\n", "cpu a b c d e f g h\n", "cpu0 1 2"])
def test_odd_statistics_are_refused(text: str) -> None:
    with pytest.raises(NodeFailure, match="/proc/stat"):
        parse_stat(text)


def test_one_sample_says_nothing_yet() -> None:
    samples = Samples(ticks_per_s=100)
    assert samples.average() == Load()
    samples.add(1.0, (5, 5))
    assert samples.average() == Load()


def test_the_average_is_over_the_ends_of_the_window() -> None:
    samples = Samples(ticks_per_s=100)
    for at_s, busy in ((0.0, 0), (WINDOW_S, 30_000), (WINDOW_S + 100, 40_000)):
        samples.add(at_s, (busy, busy))
    # The first sample is out of the window by now: 10,000 ticks in 100 seconds are left.
    assert samples.average() == Load(1.0, (1.0,))


def test_it_begins_anew_when_processors_come_or_go() -> None:
    samples = Samples(ticks_per_s=100)
    samples.add(0.0, (0, 0))
    samples.add(5.0, (500, 250, 250))
    assert samples.average() == Load()
    samples.add(10.0, (1000, 500, 500))
    assert samples.average() == Load(1.0, (0.5, 0.5))


@given(st.lists(st.tuples(st.floats(0.1, 100), st.integers(-3, 50)), min_size=2, max_size=30))
def test_load_is_never_less_than_idle(steps: list[tuple[float, int]]) -> None:
    samples, now_s, busy = Samples(ticks_per_s=100), 0.0, 1000
    for seconds, ticks in steps:
        now_s, busy = now_s + seconds, busy + ticks  # counters may go back a little
        samples.add(now_s, (busy, busy))
    assert samples.average().total >= 0
