"""The harness that disturbs stories meets each kind of place, and never waits for ever."""

import asyncio
from collections.abc import Callable

import pytest

from common.names import CallId, Epoch
from common.noderpc.instances import Instances
from common.rpc.envelope import Envelope
from common.rpc.server import Reply
from coordinator.operations.step import record
from coordinator.state.state import State
from tests.support import seeds
from tests.support.clock import simulate
from tests.support.crashing import AT_ONCE, together
from tests.support.faults import LONGEST_WAIT_S, Trap
from tests.support.moments import Moment, Moments
from tests.support.network import Trip
from tests.support.places import EVERY, MANY, some

PLACES = list(range(0, 90, 3))
CALL = Trip(
    "alpha", "beta", Instances.calls["guests"], Envelope(epoch=Epoch(1), call=CallId("a")), b""
)


@pytest.fixture(autouse=True)
def _usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GANTRY_SIM_SEEDS", raising=False)
    monkeypatch.setenv("GANTRY_SIM_CARE", "usual")


@pytest.mark.parametrize("turn", range(EVERY))
def test_a_story_is_disturbed_at_both_ends_and_around_what_is_final(turn: int) -> None:
    chosen = some(PLACES, turn=turn, final=range(31, 58))
    assert {0, 30, 33, 57, 60, 87} <= set(chosen)
    assert chosen == sorted(chosen)
    assert len(chosen) < len(PLACES) / 2


@pytest.mark.parametrize("turn", range(EVERY))
def test_an_edit_that_is_final_has_places_around_it_though_none_within(turn: int) -> None:
    assert {30, 33} <= set(some(PLACES, turn=turn, final=range(31, 31)))


def test_among_stories_that_are_alike_every_place_is_met() -> None:
    assert {place for turn in range(EVERY) for place in some(PLACES, turn=turn)} == set(PLACES)


def test_in_a_hurry_a_story_is_disturbed_at_its_ends_and_around_what_is_final(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GANTRY_SIM_CARE", "quick")
    assert some(PLACES, turn=1, final=range(31, 58)) == [0, 30, 33, 57, 60, 87]
    assert seeds.one_in(3) == 6
    assert seeds.seeds(8) == [0, 1, 2, 3]
    assert seeds.seeds(1) == [0]


def test_a_word_for_how_much_is_tried_that_does_not_exist_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GANTRY_SIM_CARE", "carefree")
    with pytest.raises(ValueError, match="carefree; it can be quick, usual, thorough"):
        seeds.care()


def test_a_short_story_is_disturbed_everywhere() -> None:
    assert some(PLACES[:MANY], turn=0) == PLACES[:MANY]


def test_one_job_is_met_by_several_crashes_each_in_a_step_of_its_own() -> None:
    moments = [Moment(step, number) for step in ("", "a", "b", "c", "d", "e") for number in (0, 1)]
    groups = together(moments, range(len(moments)))
    assert groups == [[0, 2, 4, 6], [1, 3, 5, 7], [8, 10], [9, 11]]
    assert max(map(len, groups)) == AT_ONCE


def test_crashes_are_alone_when_time_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GANTRY_SIM_SEEDS", str(seeds.USUAL + 1))
    assert together([Moment("a", 0), Moment("b", 0)], (0, 1)) == [[0], [1]]


def test_a_trap_at_a_moment_springs_when_the_step_has_begun_once_more() -> None:
    moments = Moments(lambda trip: trip is CALL)
    sprung: list[None] = []
    trap = moments.trap(Moment("second", 1), lambda: sprung.append(None))

    async def call() -> None:
        await moments.coming(CALL, Reply(200, b""))
        await asyncio.wait_for(trap.coming(CALL, Reply(200, b"")), 1.0)

    async def scenario() -> None:
        moments.begin_anew()
        await call()
        for _ in moments.noted(iter((record("first", _no_edit), record("second", _no_edit)))):
            assert not sprung
            await call()
        with pytest.raises(TimeoutError):
            await call()
        assert sprung

    simulate(scenario())
    assert moments.moments == [
        Moment("", 0), Moment("first", 0), Moment("second", 0), Moment("second", 1),
    ]  # fmt: skip


def _no_edit(_: State) -> tuple[()]:
    return ()


def test_every_place_is_tried_when_time_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GANTRY_SIM_SEEDS", str(seeds.USUAL + 1))
    assert some(PLACES, turn=0) == PLACES


def _sprung_after_s(trap: Trap, calls: int) -> float:
    async def scenario() -> float:
        async def call() -> None:
            for _ in range(calls):
                await trap.coming(CALL, Reply(200, b""))

        calling = asyncio.ensure_future(call())
        await trap.until_sprung()
        calling.cancel()
        await asyncio.wait([calling])
        return asyncio.get_running_loop().time()

    return simulate(scenario())


def _trap(index: int, spring: Callable[[], None]) -> Trap:
    return Trap(lambda trip: trip is CALL, index, spring)


def test_a_trap_springs_at_its_call() -> None:
    sprung: list[None] = []
    assert _sprung_after_s(_trap(2, lambda: sprung.append(None)), 5) == 0
    assert sprung == [None]


def test_a_trap_for_a_last_call_that_went_with_another_one_springs_when_all_is_over() -> None:
    sprung: list[None] = []
    assert _sprung_after_s(_trap(2, lambda: sprung.append(None)), 2) == LONGEST_WAIT_S
    assert sprung == [None]


def test_a_trap_that_missed_more_than_a_call_says_so() -> None:
    with pytest.raises(AssertionError, match="1 came of 3"):
        _sprung_after_s(_trap(2, lambda: None), 1)
