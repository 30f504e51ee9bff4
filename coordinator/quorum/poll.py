"""The answers of one round, as far as they count."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Self

from common.model.stamp import Stamp
from common.names import Epoch, NodeName
from common.noderpc.mastership import Ballot
from coordinator.quorum.astray import Astray, claimed, sort_out
from coordinator.quorum.question import Question

Ballots = Mapping[NodeName, Ballot]
Stamps = Mapping[NodeName, Stamp]
NOTHING_SEEN: Stamps = {}


@dataclass(frozen=True, slots=True)
class Poll:
    """The answers of the voters, and who may still answer."""

    question: Question
    ballots: dict[NodeName, Ballot]  # that count
    astray: tuple[Astray, ...]
    pending: frozenset[NodeName]
    states: dict[NodeName, Stamp]  # of the candidates that hold one
    seen: Stamps  # earlier

    @classmethod
    def of(
        cls, question: Question, ballots: Ballots, silent: Collection[NodeName], seen: Stamps
    ) -> Self:
        answers = {node: ballots[node] for node in question.voters if node in ballots}
        counted, astray = sort_out(answers, question.candidates)
        # A candidate with an empty replica (new, or with a new disk) answers, but its answer
        # says nothing about what the others acknowledged: it is no part of their majority.
        states = {
            node: ballot.stamp
            for node, ballot in counted.items()
            if node in question.candidates and ballot.stamp is not None and ballot.stamp.serial
        }
        pending = question.voters - answers.keys() - frozenset(silent)
        return cls(question, counted, astray, pending, states, seen)

    def claim_of(self, node: NodeName) -> Epoch:
        return claimed(self.ballots[node], node in self.question.candidates)

    def naming(self, me: NodeName, *, candidates: bool) -> set[NodeName]:
        """Return who names ``me``; of the ``candidates`` only those who have obeyed it.

        Whoever took over has given orders to candidates, its first commit; to other nodes perhaps
        none yet, so that they granted it an epoch has to do for them.
        """
        if candidates:
            answers = {n: b for n, b in self.ballots.items() if n in self.question.candidates}
            return {node for node, ballot in answers.items() if ballot.master == me}
        return {node for node, b in self.ballots.items() if me in (b.master, b.holder)}
