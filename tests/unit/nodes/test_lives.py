"""Whose noded was started anew, and how often that is believed."""

import asyncio

from common.bell import first_of
from common.names import NodeId
from coordinator.nodes.lives import AGAIN_S, Lives
from tests.support.clock import simulate

ALPHA, BETA = NodeId("alpha"), NodeId("beta")


def test_another_process_is_another_life_and_the_first_is_none() -> None:
    lives = Lives()
    assert lives.number(ALPHA) == 0
    for process, number in (("a", 0), ("a", 0), ("b", 1), ("b", 1)):
        lives.heard(ALPHA, process, 5.0)
        assert (lives.number(ALPHA), lives.number(BETA), lives.count) == (number, 0, number)


def test_a_node_that_names_another_life_with_each_answer_is_believed_now_and_then() -> None:
    lives = Lives()
    for tenth in range(10 * int(AGAIN_S) * 3):
        lives.heard(ALPHA, str(tenth), tenth / 10)
    assert lives.number(ALPHA) == 3


def test_a_life_that_begins_soon_after_another_is_counted_later() -> None:
    lives = Lives()
    for process, now_s in (("a", 0.0), ("b", 1.0), ("c", 2.0), ("c", 1.0 + AGAIN_S)):
        lives.heard(ALPHA, process, now_s)
    assert lives.number(ALPHA) == 2


def test_who_waits_for_news_hears_of_another_life_and_of_no_answer_else() -> None:
    async def scenario() -> None:
        lives = Lives()
        lives.heard(ALPHA, "a", 0.0)
        waits = asyncio.ensure_future(first_of(lives.next))
        await asyncio.sleep(0)
        lives.heard(ALPHA, "a", 1.0)
        await asyncio.sleep(0)
        assert not waits.done()
        lives.heard(ALPHA, "b", 2.0)
        assert await waits is lives.next

    simulate(scenario())
