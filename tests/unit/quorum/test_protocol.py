"""No order of calls, crashes, cuts and lost answers makes two masters or loses a commit."""

import random
from collections.abc import Callable
from functools import cache
from itertools import combinations

import pytest

from common.names import Epoch, NodeName
from common.noderpc.mastership import Ballot
from coordinator.quorum.decide import confirm, decide
from coordinator.quorum.objection import NamedOther, NoMajority, Objection
from coordinator.quorum.question import Mode, Question
from coordinator.quorum.verdict import Refused, Won
from tests.support.seeds import examples
from tests.unit.quorum.protocol import History, Node, World, extended

STEPS = 2_000
SEEDS = range(examples(100))


def run(seed: int) -> World:
    draw = random.Random(seed)
    nodes = draw.randint(2, 9)
    world = World(seed, nodes, candidates=draw.randint(1, nodes))
    for _ in range(STEPS):
        world.step()
    return world


finished = cache(run)


@pytest.mark.parametrize("seed", SEEDS)
def test_any_run(seed: int) -> None:
    finished(seed)


def test_runs_are_not_idle() -> None:
    worlds = [finished(seed) for seed in range(20)]
    assert sum(len(world.winners) for world in worlds) > 200
    assert sum(len(world.acknowledged) for world in worlds) > 500
    assert sum(len(set(world.winners.values())) > 1 for world in worlds) > 10


def grants_twice(node: Node, epoch: Epoch, to: NodeName, *, only_if_named: bool) -> None:
    if epoch >= node.epoch:
        node.epoch, node.holder = epoch, to


def obeys_anyone(node: Node, epoch: Epoch, master: NodeName) -> bool:
    return True


def is_durable_on_any(stored: set[NodeName], candidates: frozenset[NodeName]) -> bool:
    return bool(stored)


@pytest.mark.parametrize(
    ("name", "mistake", "complaint"),
    [
        ("Node.grant", grants_twice, "won twice"),
        ("Node.obey", obeys_anyone, "missing|two acknowledged"),
        ("is_durable", is_durable_on_any, "missing|two acknowledged"),
    ],
)
def test_the_model_notices_a_mistake(
    monkeypatch: pytest.MonkeyPatch, name: str, mistake: Callable[..., object], complaint: str
) -> None:
    monkeypatch.setattr(f"tests.unit.quorum.protocol.{name}", mistake)
    with pytest.raises(AssertionError, match=complaint):
        for seed in SEEDS:
            run(seed)


A, B, C, D, E = FIVE = tuple(NodeName(name) for name in "abcde")


class Cluster:
    """Five candidates, and calls in an order written down."""

    def __init__(self) -> None:
        first = extended((), Epoch(1), "init")
        self.nodes = {
            name: Node(name, holds_state=True, master=A, holder=A, history=first) for name in FIVE
        }

    def ballots(self, *names: NodeName) -> dict[NodeName, Ballot]:
        return {name: self.nodes[name].ballot() for name in names}

    def take_over(self, me: NodeName, *of: NodeName) -> tuple[Epoch, History]:
        """Win an epoch with the grants of ``of``; returns it and the state to start from."""
        question = self.question(me, Mode.TAKE_OVER)
        won = decide(question, self.ballots(*of), silent=set(FIVE))
        assert isinstance(won, Won)
        for name in of:
            self.nodes[name].grant(won.epoch, me, only_if_named=question.only_if_named)
        won = confirm(question, won.epoch, self.ballots(*of), silent=set(FIVE))
        assert isinstance(won, Won)
        return won.epoch, self.nodes[won.newest].history

    def store(self, epoch: Epoch, me: NodeName, history: History, *on: NodeName) -> None:
        for name in on:
            assert self.nodes[name].store(epoch, me, history)

    def question(self, me: NodeName, mode: Mode) -> Question:
        return Question(me, frozenset(FIVE), frozenset(FIVE), mode)


@pytest.mark.parametrize("only_if_named", [True, False])
def test_a_deposed_master_does_not_come_back_with_old_ballots(*, only_if_named: bool) -> None:
    """A asks D, then B takes over with B, C and D, then A asks the others.

    Even if nobody were asked to refuse, too few of those who grant it would still name it.
    """
    cluster = Cluster()
    old = cluster.ballots(D)
    epoch, found = cluster.take_over(B, B, C, D)
    cluster.store(epoch, B, extended(found, epoch, "took over as master"), B, C, D)
    question = cluster.question(A, Mode.START)
    won = decide(question, old | cluster.ballots(A, C, E), silent={B})
    assert isinstance(won, Won), "D, A and E name A, and C told it the epoch"
    for node in cluster.nodes.values():
        node.grant(won.epoch, A, only_if_named=only_if_named)
    verdict = confirm(question, won.epoch, cluster.ballots(*FIVE))
    refusal: Objection = NoMajority(2, 5, (B, C, D), won.epoch)
    if not only_if_named:
        refusal = NamedOther(A, 2, 5, B, (B, C, D))
    assert verdict == Refused(refusal)


@pytest.mark.parametrize("own_commit_first", [True, False])
def test_what_a_master_found_counts_once_its_own_commit_is_durable(own_commit_first: bool) -> None:
    """A stored x on A and B only; E, not knowing x, stored y on E only; A is back."""
    cluster = Cluster()
    epoch, found = cluster.take_over(A, A, B, C)
    x = extended(found, epoch, "x")
    cluster.store(epoch, A, x, A, B)
    epoch, found = cluster.take_over(E, C, D, E)
    cluster.store(epoch, E, extended(found, epoch, "y"), E)
    epoch, found = cluster.take_over(A, A, B, C)
    assert found == x
    if own_commit_first:
        found = extended(found, epoch, "took over as master")
    cluster.store(epoch, A, found, A, B, C)  # x is on a majority; may it be acknowledged?
    _, found = cluster.take_over(E, C, D, E)
    assert (found[: len(x)] == x) == own_commit_first


@pytest.mark.parametrize("granting", [(B,), (B, C), (B, C, D), FIVE])
def test_a_take_over_that_died_before_its_first_commit_leaves_the_master(
    granting: tuple[NodeName, ...],
) -> None:
    """However many granted B an epoch: nobody has obeyed it, so A may come back, and B may not."""
    cluster = Cluster()
    for name in granting:
        cluster.nodes[name].grant(Epoch(2), B, only_if_named=False)
    refused = decide(cluster.question(B, Mode.START), cluster.ballots(*FIVE))
    assert isinstance(refused, Refused)
    question = cluster.question(A, Mode.START)
    won = decide(question, cluster.ballots(*FIVE))
    assert isinstance(won, Won)
    for node in cluster.nodes.values():
        node.grant(won.epoch, A, only_if_named=question.only_if_named)
    assert isinstance(confirm(question, won.epoch, cluster.ballots(*FIVE)), Won)


def test_a_take_over_that_succeeded_lasts() -> None:
    """B's first commit is on three of five; the other two still name A and would follow it."""
    cluster = Cluster()
    epoch, found = cluster.take_over(B, B, C, D)
    cluster.store(epoch, B, extended(found, epoch, "took over as master"), B, C, D)
    for some in combinations(FIVE, 3):
        verdict = decide(cluster.question(A, Mode.START), cluster.ballots(*some), silent=set(FIVE))
        assert isinstance(verdict, Refused), some
    assert isinstance(decide(cluster.question(B, Mode.START), cluster.ballots(*FIVE)), Won)


def test_a_take_over_that_one_of_two_heard_of_leaves_somebody() -> None:
    """B's first commit is on B alone. It was acknowledged to nobody, so A may come back."""
    for nodes in ((A, B), (A, B, C)):
        pool = frozenset({A, B})
        cluster = Cluster()
        for name in nodes:
            cluster.nodes[name].grant(Epoch(2), B, only_if_named=False)
        cluster.store(Epoch(2), B, cluster.nodes[B].history, B)
        able = []
        for me in (A, B):
            question = Question(me, frozenset(nodes), pool, Mode.START)
            won = decide(question, cluster.ballots(*nodes))
            if isinstance(won, Won):
                able.append(me)
                for name in nodes:  # those who name the other are not asked to name me
                    cluster.nodes[name].grant(won.epoch, me, only_if_named=False)
                assert isinstance(confirm(question, won.epoch, cluster.ballots(*nodes)), Won)
        assert able
