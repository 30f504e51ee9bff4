"""What is kept of what nodes told, and what is not."""

import asyncio
from random import Random

import pytest

from common.errors import Conflict, Unreachable
from common.model.node import Node
from common.names import Epoch, GroupId, NodeId, NodeName
from common.noderpc.facts import Facts
from common.noderpc.instances import Instances
from common.noderpc.mastership import Mastership
from common.rpc.declare import CallSpec
from common.rpc.envelope import Envelope, answer
from common.rpc.server import Reply, refusal
from coordinator.nodes.calls import Nodes
from coordinator.nodes.heard import Heard
from tests.support.clock import simulate

GUESTS = Instances.calls["guests"]
A = NodeId("a")
WEB1 = {"id": "1", "name": "web1", "state": "running", "memory": 64, "vcpus": 1}
ALPHA = Node(uuid=A, name=NodeName("alpha"), primary_ip="10.0.0.1", group=GroupId("g"))


class SlowDial:
    """Answers a second after it was asked."""

    async def send(self, node: Node, call: CallSpec, envelope: Envelope, body: bytes) -> Reply:
        await asyncio.sleep(1)
        return Reply(200, answer([WEB1]))


def test_a_report_is_known_to_all_whoever_asked_for_it_and_as_old_as_the_question() -> None:
    async def story() -> None:
        nodes = Nodes(SlowDial(), Epoch(7), Random(1))
        await asyncio.sleep(10)
        await nodes.with_epoch(Epoch(8)).service(Instances, ALPHA).guests()
        told = nodes.heard.guests(A)
        assert told is not None
        assert ([guest.name for guest in told.value], told.asked_s) == (["web1"], 10)
        assert nodes.heard.guests(NodeId("b")) is None
        assert nodes.heard.facts(A) is None

    simulate(story())


def test_an_answer_to_an_earlier_question_takes_nobodys_place() -> None:
    heard = Heard()
    heard.note(A, GUESTS, 5, Reply(200, answer([])))
    heard.note(A, GUESTS, 3, Reply(200, answer([WEB1])))
    told = heard.guests(A)
    assert told is not None
    assert (told.value, told.asked_s) == ((), 5)


@pytest.mark.parametrize("error", [Conflict("No."), Unreachable("No."), ZeroDivisionError()])
def test_an_error_takes_no_reports_place(error: Exception) -> None:
    heard = Heard()
    heard.note(A, GUESTS, 3, Reply(200, answer([WEB1])))
    heard.note(A, GUESTS, 5, refusal(error))
    told = heard.guests(A)
    assert told is not None
    assert told.asked_s == 3


@pytest.mark.parametrize("body", [b"<html>", answer([{"id": 7}]), answer(None), b"{" * 9999])
def test_what_cannot_be_read_is_not_known(body: bytes) -> None:
    heard = Heard()
    heard.note(A, GUESTS, 3, Reply(200, body))
    assert heard.guests(A) is None


def test_only_what_lists_show_is_kept() -> None:
    heard = Heard()
    for service in (Instances, Facts, Mastership):
        for call in service.calls.values():
            heard.note(A, call, 3, Reply(200, b"x" * 1000))
    assert {call for _, call in heard._last} == {"instances.guests", "facts.facts"}
