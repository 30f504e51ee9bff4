"""Becoming master: how long it waits for nodes that say nothing, and whom it counts."""

import asyncio
from random import Random

import pytest

from common.errors import Deposed, NotListed
from common.model.cluster import Cluster
from common.model.group import Group
from common.model.node import Node
from common.model.stamp import Stamp
from common.names import ClusterId, ClusterName, Epoch, GroupId, GroupName, NodeId, NodeName, Serial
from common.noderpc.mastership import Ballot, Mastership
from common.rpc.declare import CallSpec
from common.rpc.envelope import Envelope
from common.rpc.server import Dispatcher, Reply
from coordinator.master.confirm import PATIENCE_S, WORD_S, NoQuorum, NotMaster, become_master
from coordinator.nodes.calls import Nodes
from coordinator.quorum.question import Mode, Word
from coordinator.state.loading import Loaded
from coordinator.state.state import state_of
from tests.support.clock import simulate

ALPHA, BETA, GAMMA = (NodeName(name) for name in ("alpha", "beta", "gamma"))
STAMP = Stamp(epoch=Epoch(4), serial=Serial(9), digest="d")
MASTER = NodeName("alpha")  # of epoch 4


class Voter(Mastership):
    """A node as far as mastership goes."""

    def __init__(self) -> None:
        self.epoch, self.master = Epoch(4), MASTER
        self.stamp: Stamp = STAMP
        self.refuses = False  # to be connected to
        self.obeys = [ALPHA, BETA, GAMMA]
        self.grants = asyncio.Event()
        self.grants.set()
        self.speaks = asyncio.Event()
        self.speaks.set()

    async def vote(self) -> Ballot:
        if BETA not in self.obeys:
            raise NotListed("no candidate", listed=self.obeys, age=[4, 9])
        return Ballot(master=self.master, epoch=self.epoch, stamp=self.stamp)

    async def grant(self, *, epoch: Epoch, master: NodeName, only_if_named: bool = False) -> None:
        await self.grants.wait()
        if epoch <= self.epoch:
            raise Deposed("too late")
        self.epoch, self.master = epoch, master

    async def watch(self, *, epoch: Epoch) -> Ballot:
        return await self.vote()


class Wire:
    """Implements ``Dial`` over voters."""

    def __init__(self) -> None:
        self.voters = {name: Voter() for name in (ALPHA, BETA, GAMMA)}
        self.asked: list[tuple[str, str]] = []

    async def send(self, node: Node, call: CallSpec, envelope: Envelope, body: bytes) -> Reply:
        voter = self.voters[node.name]
        self.asked.append((node.name, call.method))
        if voter.refuses:
            raise ConnectionRefusedError
        await voter.speaks.wait()
        return await Dispatcher(voter).run(call, body)


def cluster_of_three() -> Loaded:
    nodes = [
        Node(
            uuid=NodeId(name),
            name=name,
            primary_ip="192.0.2.1",
            group=GroupId("g"),
            master_candidate=True,
        )
        for name in (ALPHA, BETA, GAMMA)
    ]
    cluster = Cluster(uuid=ClusterId("c"), name=ClusterName("test"), master=NodeId(MASTER))
    return Loaded(state_of((cluster, Group(uuid=GroupId("g"), name=GroupName("g")), *nodes), STAMP))


async def take_over(
    wire: Wire, word: Word = Word.NONE
) -> tuple[Epoch, tuple[NodeName, ...], float]:
    """Return the epoch that beta won, who was not heard, and how long it took."""
    nodes = Nodes(wire, Epoch(0), Random(7))
    confirmed = await become_master(BETA, cluster_of_three(), nodes, Mode.TAKE_OVER, word)
    return confirmed.won.epoch, confirmed.unheard, asyncio.get_running_loop().time()


def test_with_everybody_there_it_waits_for_nothing() -> None:
    wire = Wire()
    assert simulate(take_over(wire)) == (5, (), 0.0)
    assert {(voter.epoch, voter.master) for voter in wire.voters.values()} == {(5, BETA)}


def test_a_dead_master_that_refuses_connections_is_not_waited_for() -> None:
    wire = Wire()
    wire.voters[ALPHA].refuses = True
    assert simulate(take_over(wire)) == (5, (ALPHA,), 0.0)


def test_a_dead_master_that_says_nothing_is_waited_for_once() -> None:
    wire = Wire()
    wire.voters[ALPHA].speaks.clear()
    assert simulate(take_over(wire)) == (5, (ALPHA,), PATIENCE_S[0])
    assert ("alpha", "grant") in wire.asked  # all the same: it may be coming back


def test_a_slow_node_whose_vote_is_needed_is_waited_for_longer() -> None:
    wire = Wire()
    wire.voters[ALPHA].refuses = True
    wire.voters[GAMMA].speaks.clear()

    async def scenario() -> tuple[Epoch, tuple[NodeName, ...], float]:
        asyncio.get_running_loop().call_later(0.9, wire.voters[GAMMA].speaks.set)
        return await take_over(wire)

    epoch, unheard, took_s = simulate(scenario())
    assert (epoch, unheard) == (5, (ALPHA,))
    assert took_s < sum(PATIENCE_S[:2])


def test_without_a_majority_it_gives_up_and_says_why() -> None:
    wire = Wire()
    wire.voters[ALPHA].refuses = wire.voters[GAMMA].refuses = True
    with pytest.raises(NotMaster, match=r"Only 1 of 3 nodes answered, .* missing: alpha, gamma"):
        simulate(take_over(wire))
    assert wire.voters[BETA].epoch == 4


def with_only_gamma(wire: Wire, after_s: float) -> None:
    """Have alpha be dead, and gamma, whose answer counts, slow."""
    wire.voters[ALPHA].refuses = True
    wire.voters[GAMMA].speaks.clear()
    asyncio.get_running_loop().call_later(after_s, wire.voters[GAMMA].speaks.set)


def test_the_word_is_not_used_before_slow_nodes_were_heard() -> None:
    wire = Wire()

    async def scenario() -> tuple[Epoch, tuple[NodeName, ...], float]:
        with_only_gamma(wire, 0.4)
        return await take_over(wire, Word.NO_VOTING)

    epoch, unheard, took_s = simulate(scenario())
    assert (epoch, unheard) == (5, (ALPHA,))
    assert took_s < WORD_S


def test_the_word_is_for_those_who_stay_silent() -> None:
    wire = Wire()
    wire.voters[ALPHA].refuses = True
    wire.voters[GAMMA].speaks.clear()
    epoch, unheard, took_s = simulate(take_over(wire, Word.NO_VOTING))
    assert (epoch, unheard) == (5, (ALPHA, GAMMA))
    assert WORD_S <= took_s <= 3 * WORD_S


def test_the_word_does_not_drop_a_newer_state_whose_grant_is_slow() -> None:
    wire = Wire()
    wire.voters[ALPHA].refuses = True
    wire.voters[GAMMA].stamp = Stamp(epoch=Epoch(4), serial=Serial(10), digest="e")
    wire.voters[GAMMA].grants.clear()
    with pytest.raises(NoQuorum, match=r"gamma showed a newer state .*--local-is-right"):
        simulate(take_over(wire, Word.NO_VOTING))


@pytest.mark.parametrize("falls_silent", [False, True])
def test_the_word_does_not_go_below_a_node_that_does_not_listen(*, falls_silent: bool) -> None:
    wire = Wire()
    wire.voters[ALPHA].refuses = True
    wire.voters[GAMMA].obeys = [ALPHA, GAMMA]

    async def scenario() -> None:
        if falls_silent:
            asyncio.get_running_loop().call_later(1.0, wire.voters[GAMMA].speaks.clear)
        await take_over(wire, Word.NO_VOTING)

    with pytest.raises(NotMaster, match=r"gamma answers, but .* to beta, only to alpha, gamma"):
        simulate(scenario())
    assert wire.voters[BETA].epoch == 4


def test_the_word_is_used_when_a_node_was_told_to_listen_meanwhile() -> None:
    wire = Wire()
    wire.voters[ALPHA].refuses = True
    wire.voters[GAMMA].obeys = []

    async def scenario() -> Epoch:
        asyncio.get_running_loop().call_later(1.0, wire.voters[GAMMA].obeys.append, BETA)
        epoch, _, _ = await take_over(wire, Word.NO_VOTING)
        return epoch

    assert simulate(scenario()) == 5


def test_a_node_that_cannot_give_the_state_it_shows_keeps_nobody_from_being_master() -> None:
    """Gamma lies, or its disk does: what it shows cannot be read from it."""
    wire = Wire()
    wire.voters[GAMMA].stamp = Stamp(epoch=Epoch(4), serial=Serial(10), digest="e")
    epoch, _, took_s = simulate(take_over(wire))
    assert epoch in (5, 6)
    assert took_s < 1
