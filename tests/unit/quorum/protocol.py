"""A small model of masterships: nodes that grant and store, contenders that come and go.

Everything happens one call at a time, in an order drawn by chance; an answer may get lost,
a contender may crash at any point, a replica may be lost. What must always hold is checked
as it happens.
"""

import hashlib
import random
from dataclasses import dataclass, field

from common.model.stamp import Stamp
from common.names import Epoch, NodeName, Serial
from common.noderpc.mastership import Ballot
from coordinator.quorum.decide import confirm, decide
from coordinator.quorum.majority import is_durable
from coordinator.quorum.question import Mode, Question
from coordinator.quorum.verdict import Wait, Won

History = tuple[Stamp, ...]  # one stamp a commit, oldest first


def extended(history: History, epoch: Epoch, content: str) -> History:
    before = history[-1] if history else Stamp()
    digest = hashlib.sha256(f"{before.digest} {epoch} {content}".encode()).hexdigest()[:8]
    return (*history, Stamp(epoch=epoch, serial=Serial(before.serial + 1), digest=digest))


@dataclass
class Node:
    """What ``noded`` keeps on disk."""

    name: NodeName
    holds_state: bool
    epoch: Epoch = Epoch(1)
    master: NodeName | None = None  # obeyed last
    holder: NodeName | None = None  # of the epoch
    history: History = ()

    def ballot(self) -> Ballot:
        newest = self.history[-1] if self.history else None
        stamp = newest if self.holds_state else None
        granted_to = self.holder if self.holder != self.master else None
        return Ballot(master=self.master, epoch=self.epoch, granted_to=granted_to, stamp=stamp)

    def grant(self, epoch: Epoch, to: NodeName, *, only_if_named: bool) -> None:
        if epoch > self.epoch and (to in (self.master, self.holder) or not only_if_named):
            self.epoch, self.holder = epoch, to

    def obey(self, epoch: Epoch, master: NodeName) -> bool:
        """The fence; an order of a newer epoch counts as a grant of it."""
        if epoch > self.epoch:
            self.epoch, self.holder = epoch, master
        if (epoch, master) != (self.epoch, self.holder):
            return False
        self.master = master
        return True

    def store(self, epoch: Epoch, master: NodeName, history: History) -> bool:
        if not self.obey(epoch, master):
            return False
        if not self.history or history[-1].age > self.history[-1].age:
            self.history = history
        return self.history[: len(history)] == history


@dataclass
class Contender:
    """A coordinator on one candidate; ``question`` is None while none runs there."""

    name: NodeName
    question: Question | None = None
    asked: Epoch | None = None  # the epoch it asks the nodes for
    name_others: frozenset[NodeName] = frozenset()  # by their first ballots
    ballots: dict[NodeName, Ballot] = field(default_factory=dict)
    epoch: Epoch | None = None  # the one it is master of
    history: History = ()
    stored: set[NodeName] = field(default_factory=set)  # who has the last commit

    def stop(self) -> None:
        self.__init__(self.name)  # type: ignore[misc]  # all that a crash leaves


class World:
    """A cluster; ``step`` lets one thing happen."""

    def __init__(self, seed: int, nodes: int, candidates: int) -> None:
        self.random = random.Random(seed)
        names = [NodeName(f"n{number}") for number in range(nodes)]
        self.candidates = frozenset(names[:candidates])
        first = extended((), Epoch(1), "init")
        self.nodes = {
            name: Node(
                name, name in self.candidates, master=names[0], holder=names[0], history=first
            )
            for name in names
        }
        self.contenders = {name: Contender(name) for name in names[:candidates]}
        self.winners: dict[Epoch, NodeName] = {Epoch(1): names[0]}
        self.reigned = {Epoch(1)}  # what was told to have succeeded: a commit was acknowledged
        self.acknowledged: list[History] = [first]
        self.take_overs: set[tuple[NodeName, Epoch]] = set()  # that were tried
        self.away: frozenset[NodeName] = frozenset()  # cut off at present
        # Each world has its own temper: some races need haste, others need patience.
        self.crashes = self.random.choice([0.002, 0.02, 0.1, 0.3])
        self.loses = self.random.choice([0.0, 0.1, 0.4])
        self.reaches = self.random.randint(1, nodes)  # at most so many nodes in a step

    def step(self) -> None:
        chance = self.random.random()
        if chance < 0.01:
            count = self.random.choice([0, 0, 1, self.random.randrange(len(self.nodes))])
            self.away = frozenset(self.random.sample(sorted(self.nodes), count))
        elif chance < 0.0105:
            self.nodes[self.random.choice(sorted(self.nodes))].history = ()  # a new disk
        else:
            self.act(self.contenders[self.random.choice(sorted(self.contenders))])

    def act(self, contender: Contender) -> None:
        if contender.question is None:
            if self.random.random() < 0.1:
                mode = Mode.TAKE_OVER if self.random.random() < 0.3 else Mode.START
                voters = frozenset(self.nodes)
                contender.question = Question(contender.name, voters, self.candidates, mode)
        elif self.random.random() < (self.crashes if contender.epoch else 0.02):
            contender.stop()
        elif contender.epoch is None:
            self.campaign(contender, contender.question)
        else:
            self.reign(contender, contender.epoch)

    def campaign(self, contender: Contender, question: Question) -> None:
        for node in self.reach():
            if contender.asked:
                self.ask_for_grant(node, contender, question, contender.asked)
            if self.random.random() >= self.loses:
                contender.ballots[node.name] = node.ballot()
        if self.random.random() < 0.5:
            silent = question.voters if self.random.random() < 0.3 else frozenset()
            self.judge(contender, question, silent)

    def ask_for_grant(
        self, node: Node, contender: Contender, question: Question, epoch: Epoch
    ) -> None:
        if question.mode is Mode.TAKE_OVER:
            self.take_overs.add((question.me, epoch))
        only_if_named = question.only_if_named and node.name not in contender.name_others
        node.grant(epoch, question.me, only_if_named=only_if_named)

    def judge(self, contender: Contender, question: Question, silent: frozenset[NodeName]) -> None:
        if contender.asked is None:
            verdict = decide(question, contender.ballots, silent=silent)
            if isinstance(verdict, Won):
                contender.name_others = frozenset(
                    name
                    for name, ballot in contender.ballots.items()
                    if question.me not in (ballot.master, ballot.holder)
                )
                contender.asked, contender.ballots = verdict.epoch, {}
        else:
            verdict = confirm(question, contender.asked, contender.ballots, silent=silent)
            if isinstance(verdict, Won):
                self.install(contender, question, verdict)
        if not isinstance(verdict, Won | Wait):
            contender.stop()
        assert not (isinstance(verdict, Wait) and silent), "waits for nobody"

    def install(self, contender: Contender, question: Question, won: Won) -> None:
        source = self.nodes[won.newest]
        if source.ballot().stamp != won.stamp or won.newest in self.away:
            contender.stop()  # what was confirmed is gone: begin again
            return
        contender.epoch, contender.history = won.epoch, source.history
        self.check_winner(contender, question, won.epoch)
        self.winners[won.epoch] = contender.name
        self.commit(contender, won.epoch, "took over as master")

    def reign(self, contender: Contender, epoch: Epoch) -> None:
        if is_durable(contender.stored, self.candidates):
            self.acknowledge(contender.history)
            self.reigned.add(epoch)
            self.commit(contender, epoch, f"change {self.random.random()}")
        for node in self.reach():
            if node.holds_state:
                obeyed = node.store(epoch, contender.name, contender.history)
            else:
                obeyed = node.obey(epoch, contender.name)
            if not obeyed:
                contender.stop()
                return
            if self.random.random() >= self.loses:
                contender.stored.add(node.name)

    def commit(self, contender: Contender, epoch: Epoch, content: str) -> None:
        contender.history = extended(contender.history, epoch, content)
        contender.stored = set()

    def reach(self) -> list[Node]:
        """Draw the nodes that the next calls get to, in which order."""
        names = self.random.sample(sorted(self.nodes), self.random.randint(1, self.reaches))
        return [self.nodes[name] for name in names if name not in self.away]

    def check_winner(self, contender: Contender, question: Question, epoch: Epoch) -> None:
        assert epoch not in self.winners, f"epoch {epoch} was won twice"
        for history in self.acknowledged:
            if history[-1].epoch < epoch:
                missing = history[len(contender.history) :] or history
                assert contender.history[: len(history)] == history, f"{missing} is missing"
        before = max((each for each in self.reigned if each < epoch), default=Epoch(0))
        if question.mode is Mode.START and self.winners[before] != contender.name:
            tried = [(contender.name, Epoch(each)) for each in range(before + 1, epoch)]
            assert any(each in self.take_overs for each in tried), (
                f"{contender.name} was deposed in epoch {before}"
            )

    def acknowledge(self, history: History) -> None:
        """Acknowledged histories are beginnings of one another, whatever happens."""
        for other in self.acknowledged[-20:]:
            length = min(len(history), len(other))
            assert history[:length] == other[:length], "two acknowledged histories"
        self.acknowledged.append(history)
