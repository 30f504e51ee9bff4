"""The harness that disturbs stories meets each kind of place, and never waits for ever."""

import asyncio
from collections.abc import Callable

import pytest

from common.names import CallId, Epoch
from common.noderpc.instances import Instances
from common.rpc.envelope import Envelope
from common.rpc.server import Reply
from tests.support import seeds
from tests.support.clock import simulate
from tests.support.faults import LONGEST_WAIT_S, Trap
from tests.support.network import Trip
from tests.support.places import EVERY, MANY, some

PLACES = list(range(0, 90, 3))
CALL = Trip(
    "alpha", "beta", Instances.calls["guests"], Envelope(epoch=Epoch(1), call=CallId("a")), b""
)


@pytest.fixture(autouse=True)
def _usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GANTRY_SIM_SEEDS", raising=False)


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


def test_a_short_story_is_disturbed_everywhere() -> None:
    assert some(PLACES[:MANY], turn=0) == PLACES[:MANY]


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
