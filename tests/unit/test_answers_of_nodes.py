"""What a node answers is held against what it was asked before anybody makes use of it."""

import asyncio

import pytest

from common.errors import BadAnswer
from common.noderpc.network import Network
from common.rpc.client import stub
from common.rpc.declare import CallSpec
from common.rpc.envelope import answer


class Liar:
    """A node that answers what it likes."""

    peer = "gamma"

    def __init__(self, told: object) -> None:
        self._told = told

    async def send(self, call: CallSpec, body: bytes) -> bytes:
        return answer(self._told)


def links(told: list[bool]) -> tuple[bool, ...]:
    """Ask for two links; return what the answer is taken for."""

    async def ask() -> tuple[bool, ...]:
        return await stub(Network, Liar(told)).links(names=("br0", "br1"))

    return asyncio.run(ask())


@pytest.mark.parametrize("told", [[], [True], [True, False, True]])
def test_an_answer_for_more_or_less_than_was_asked_is_a_bad_one(told: list[bool]) -> None:
    with pytest.raises(BadAnswer, match=f"gamma answered network.links for {len(told)} of 2 names"):
        links(told)


def test_one_for_each_is_taken() -> None:
    assert links([True, False]) == (True, False)
