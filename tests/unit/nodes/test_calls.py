"""What goes with a call, and what its failures mean."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeVar

import pytest

from common.errors import (
    BadAnswer,
    Conflict,
    Expired,
    GntError,
    InvalidRequest,
    NodeFailure,
    Unreachable,
)
from common.messages import to_json
from common.model.node import Node
from common.names import CallId, Epoch, GroupId, InstanceId, JobId, NodeId, NodeName
from common.noderpc.facts import Facts
from common.noderpc.instances import Instances
from common.noderpc.mastership import Mastership
from common.rpc.clock import GOOD_UNTIL, Reading
from common.rpc.declare import CallSpec
from common.rpc.envelope import CALL, EPOCH, JOB, Envelope, answer, read_headers
from common.rpc.server import Reply, refusal
from coordinator.nodes.calls import Nodes
from coordinator.nodes.each import each, split
from tests.support.clock import simulate

ALPHA = Node(uuid=NodeId("a"), name=NodeName("alpha"), primary_ip="10.0.0.1", group=GroupId("g"))
BALLOT = Reply(200, answer({"master": "alpha", "epoch": 3, "of the future": True}))

T = TypeVar("T")
Do = Callable[[], Awaitable[Reply]]


class FakeDial:
    """Answers with what ``behaviours`` do, one after the other; remembers the envelopes."""

    def __init__(self, *behaviours: Do | Reply | Exception) -> None:
        self.sent: list[Envelope] = []
        self._behaviours = list(behaviours)

    async def send(self, node: Node, call: CallSpec, envelope: Envelope, body: bytes) -> Reply:
        self.sent.append(envelope)
        behaviour = self._behaviours.pop(0)
        if isinstance(behaviour, Exception):
            raise behaviour
        return behaviour if isinstance(behaviour, Reply) else await behaviour()


def nodes(dial: FakeDial, epoch: int = 7) -> Nodes:
    return Nodes(dial, Epoch(epoch), Random(1))


async def ask(call: Awaitable[T]) -> T:
    return await call


def test_the_envelope_says_for_whom() -> None:
    dial = FakeDial(BALLOT, BALLOT)
    service = nodes(dial).with_epoch(Epoch(8)).service(Mastership, ALPHA, job=JobId(12))

    async def story() -> None:
        ballot = await service.vote()
        assert (ballot.master, ballot.epoch) == ("alpha", 3)
        await service.vote()

    simulate(story())
    first, second = dial.sent
    assert (first.epoch, first.job) == (8, 12)
    assert first.call != second.call


def test_a_lost_connection_is_tried_once_more_with_the_same_id() -> None:
    async def story() -> None:
        async def late_loss() -> Reply:
            await asyncio.sleep(2)
            raise ConnectionResetError

        dial = FakeDial(late_loss, BALLOT)
        await nodes(dial).service(Mastership, ALPHA).vote()
        assert dial.sent[0].call == dial.sent[1].call
        with pytest.raises(Unreachable, match="alpha"):
            dial = FakeDial(ConnectionResetError("a"), ConnectionResetError("b"))
            await nodes(dial).service(Mastership, ALPHA).vote()

    simulate(story())


def test_what_is_not_safe_to_repeat_is_not() -> None:
    async def story() -> None:
        dial = FakeDial(ConnectionResetError("gone"))
        with pytest.raises(Unreachable, match=r"is out of reach: gone\."):
            await nodes(dial).service(Facts, ALPHA).powercycle()

    simulate(story())


def test_an_answer_that_does_not_come_is_waited_for_so_long() -> None:
    async def story() -> None:
        async def silence() -> Reply:
            await asyncio.sleep(1000)
            return BALLOT

        with pytest.raises(Unreachable, match=r"did not answer mastership.vote within 5 seconds"):
            await nodes(FakeDial(silence)).service(Mastership, ALPHA).vote()
        assert asyncio.get_running_loop().time() == 5

    simulate(story())


_stranger = ssl.SSLCertVerificationError(1, "bad")
_stranger.verify_message = "self-signed certificate"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ConnectionRefusedError(), r"10\.0\.0\.1, port 1811.*is gantry-noded running"),
        (_stranger, "alpha.*no valid certificate of this cluster: self-signed certificate"),
        (ssl.SSLError(1, "handshake failure"), "alpha.*ended the TLS handshake"),
    ],
)
def test_what_trying_again_cannot_help_is_not_tried_again(error: OSError, message: str) -> None:
    dial = FakeDial(error)
    with pytest.raises(Unreachable, match=message) as failed:
        simulate(ask(nodes(dial).service(Mastership, ALPHA).vote()))
    assert failed.value.detail["node"] == "alpha"


def test_a_node_marked_offline_is_not_asked() -> None:
    offline = Node(
        uuid=NodeId("b"), name=NodeName("beta"), primary_ip="", group=GroupId("g"), offline=True
    )
    dial = FakeDial()
    with pytest.raises(Unreachable, match="marked offline") as failed:
        simulate(ask(nodes(dial).service(Mastership, offline).vote()))
    assert failed.value.detail["offline"] is True
    assert not dial.sent


def test_the_nodes_own_errors_come_through() -> None:
    dial = FakeDial(refusal(Conflict("A guest is in the way.", guest="web1")))
    with pytest.raises(Conflict, match="in the way") as failed:
        simulate(ask(nodes(dial).service(Facts, ALPHA).facts()))
    assert failed.value.detail == {"guest": "web1"}


def test_each_gives_an_answer_or_an_error_for_each() -> None:
    async def story() -> None:
        async def late(value: int) -> int:
            await asyncio.sleep(value)
            return value

        async def refuse() -> int:
            raise Conflict("No.")

        async def break_() -> int:
            raise ZeroDivisionError

        outcomes = await each({"a": late(3), "b": refuse(), "c": break_(), "d": late(2)})
        assert asyncio.get_running_loop().time() == 3
        answers, errors = split(outcomes)
        assert answers == {"a": 3, "d": 2}
        assert {key: error.code for key, error in errors.items()} == {"b": "conflict", "c": "bug"}
        assert await each({}) == {}

    simulate(story())


def test_an_answer_that_is_no_answer_is_told() -> None:
    for body in (b"<html>", b"[]", to_json({"result": {"master": 7}})):
        with pytest.raises(BadAnswer, match=r"the answer of alpha to mastership\.vote"):
            simulate(ask(nodes(FakeDial(Reply(200, body))).service(Mastership, ALPHA).vote()))


@pytest.mark.parametrize("epoch", [-1, 2**53 + 1, 2**63 - 1, 2**64, 10**400])
def test_a_number_beyond_its_bounds_is_no_answer(epoch: int) -> None:
    body = b'{"result": {"master": "alpha", "epoch": %d}}' % epoch
    with pytest.raises(BadAnswer, match=r"the answer of alpha to mastership\.vote"):
        simulate(ask(nodes(FakeDial(Reply(200, body))).service(Mastership, ALPHA).vote()))


@pytest.mark.parametrize("code", ["conflict.deposed", "node-failure.command", "", "of the future"])
@pytest.mark.parametrize("name", ["message", "self", "code", "detail", "argv", "no identifier", ""])
def test_a_detail_of_any_name_and_shape_is_an_error_as_any_other(code: str, name: str) -> None:
    error = {"code": code, "message": "No.", "detail": {name: [None, {"message": 7}]}}
    body = to_json({"error": error})
    with pytest.raises(GntError, match="No") as raised:
        simulate(ask(nodes(FakeDial(Reply(200, body))).service(Mastership, ALPHA).vote()))
    assert raised.value.detail == error["detail"]


def test_headers_beyond_their_bounds_are_refused() -> None:
    good = {EPOCH: "7", CALL: "c", JOB: "12", GOOD_UNTIL: "p 2.5"}
    told = Envelope(epoch=Epoch(7), call=CallId("c"), job=JobId(12), good_until=Reading("p", 2.5))
    assert read_headers(good) == told
    for name, text in ((EPOCH, str(2**63 - 1)), (EPOCH, "-1"), (JOB, "-1"), (GOOD_UNTIL, "p soon")):
        with pytest.raises(InvalidRequest, match="good header"):
            read_headers(good | {name: text})
    with pytest.raises(InvalidRequest, match="epoch"):
        read_headers({name: text for name, text in good.items() if name != EPOCH})


EXPIRED = refusal(Expired("It comes too late."))


def shown(reply: Reply, at_s: float, process: str = "p") -> Reply:
    return reply._replace(shown=Reading(process, at_s))


def test_an_order_says_until_when_it_is_good_by_the_nodes_clock() -> None:
    async def story() -> None:
        async def slowly() -> Reply:
            await asyncio.sleep(2)  # the clock was read before, or after: nobody can tell
            return shown(BALLOT, 500)

        dial = FakeDial(slowly, BALLOT)
        alpha = nodes(dial).service(Mastership, ALPHA)
        await alpha.vote()
        await asyncio.sleep(100)
        await alpha.vote()
        assert dial.sent[0].good_until is None
        # The clock showed 500 at 2 s, or more; the caller gives up at 107 s. The rest is for drift.
        assert dial.sent[1].good_until
        assert dial.sent[1].good_until.process == "p"
        assert dial.sent[1].good_until.at_s == pytest.approx(500 + 105 - 0.1)

    simulate(story())


def test_an_order_refused_as_late_is_given_again_with_what_the_refusal_told() -> None:
    dial = FakeDial(shown(EXPIRED, 500), shown(EXPIRED, 9000, "q"), BALLOT)
    simulate(ask(nodes(dial).service(Mastership, ALPHA).vote()))
    assert [sent.good_until for sent in dial.sent] == [
        None, Reading("p", 505.0), Reading("q", 9005.0),
    ]  # fmt: skip
    assert len({sent.call for sent in dial.sent}) == 3


def test_a_node_that_always_refuses_is_not_asked_for_ever() -> None:
    dial = FakeDial(*[shown(EXPIRED, 500)] * 3)
    with pytest.raises(Expired):
        simulate(ask(nodes(dial).service(Mastership, ALPHA).vote()))


@pytest.mark.parametrize("code", ["cancelled", "stuck", "unreachable", "error", "x" * 200])
def test_a_node_cannot_say_what_only_the_coordinator_knows(code: str) -> None:
    body = to_json({"error": {"code": code, "message": "No.", "detail": {}}})
    with pytest.raises(NodeFailure, match="No"):
        simulate(ask(nodes(FakeDial(Reply(502, body))).service(Mastership, ALPHA).vote()))


def test_what_a_node_says_of_an_error_is_cut_to_what_can_be_kept() -> None:
    told = {"code": "conflict", "message": "x" * 500_000, "detail": {"log": "y" * 500_000}}
    dial = FakeDial(Reply(409, to_json({"error": told})))
    with pytest.raises(Conflict) as raised:
        simulate(ask(nodes(dial).service(Mastership, ALPHA).vote()))
    assert len(raised.value.message) < 5000
    assert raised.value.detail == {}


def test_an_answer_that_is_too_large_is_the_nodes_failure() -> None:
    dial = FakeDial(Reply(200, to_json({"result": {"master": "x" * (2 << 20)}})))
    with pytest.raises(BadAnswer, match=r"alpha answered mastership\.vote with 20\d+ bytes"):
        simulate(ask(nodes(dial).service(Mastership, ALPHA).vote()))


class Silent:
    """Answers nothing until it is woken, and then at once."""

    def __init__(self) -> None:
        self.asked = 0
        self.awake = asyncio.Event()

    async def send(self, node: Node, call: CallSpec, envelope: Envelope, body: bytes) -> Reply:
        self.asked += 1
        await self.awake.wait()
        return Reply(200, to_json({"result": []}))


async def seconds(call: Awaitable[object]) -> float:
    """Return how long a call took to be given up."""
    begun_s = asyncio.get_running_loop().time()
    with pytest.raises(Unreachable):
        await call
    return asyncio.get_running_loop().time() - begun_s


def test_looks_wait_once_for_a_node_that_is_silent_and_not_again() -> None:
    async def story() -> None:
        dial = Silent()
        calls = Nodes(dial, Epoch(7), Random(1))
        alpha = calls.service(Instances, ALPHA)
        assert await seconds(alpha.guests()) == 15
        assert await seconds(alpha.guests()) == 0.5
        assert await seconds(alpha.guests()) == 0.0  # it goes on in the background
        assert dial.asked == 2
        with pytest.raises(Unreachable, match=r"has not answered for 16 s; is it up, .*\?$"):
            await calls.service(Facts, ALPHA).facts()
        dial.awake.set()
        await asyncio.sleep(0)
        assert await alpha.guests() == ()
        await asyncio.sleep(0.1)
        assert calls.silence.since(ALPHA.uuid, "instances.guests") is None
        await calls.silence.close()

    simulate(story())


def test_orders_are_tried_in_full_whoever_has_been_silent() -> None:
    async def story() -> None:
        calls = Nodes(Silent(), Epoch(7), Random(1))
        alpha = calls.service(Instances, ALPHA)
        await seconds(alpha.guests())
        assert await seconds(alpha.ensure_gone(instance=InstanceId("i"))) == 30

    simulate(story())


def test_a_node_that_is_slow_with_one_call_is_trusted_with_others() -> None:
    async def story() -> None:
        class SlowFacts(Silent):
            async def send(
                self, node: Node, call: CallSpec, envelope: Envelope, body: bytes
            ) -> Reply:
                if call.service == "facts":
                    await asyncio.sleep(1000)
                return Reply(200, to_json({"result": []}))

        calls = Nodes(SlowFacts(), Epoch(7), Random(1))
        assert await seconds(calls.service(Facts, ALPHA).facts()) == 15
        assert await calls.service(Instances, ALPHA).guests() == ()
        assert await seconds(calls.service(Facts, ALPHA).facts()) == 0.5
        await calls.silence.close()

    simulate(story())
