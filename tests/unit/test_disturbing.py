"""The harness that disturbs stories never waits for ever."""

import asyncio
from collections.abc import Callable

import pytest

from common.names import CallId, Epoch
from common.noderpc.instances import Instances
from common.rpc.envelope import Envelope
from common.rpc.server import Reply
from tests.support.clock import simulate
from tests.support.faults import LONGEST_WAIT_S, Trap
from tests.support.network import Trip

CALL = Trip(
    "alpha", "beta", Instances.calls["guests"], Envelope(epoch=Epoch(1), call=CallId("a")), b""
)


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
