"""The answers of one round, as far as they count."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Self

from common.model.stamp import Stamp
from common.names import Epoch, NodeName
from common.noderpc.mastership import Ballot
from coordinator.quorum.astray import Astray, claimed, sort_out
from coordinator.quorum.heard import Deaf, Heard
from coordinator.quorum.question import Question

Ballots = Mapping[NodeName, Ballot]


@dataclass(frozen=True, slots=True)
class Poll:
    """The answers of the voters, and who may still answer."""

    question: Question
    ballots: dict[NodeName, Ballot]  # that count
    astray: tuple[Astray, ...]
    pending: frozenset[NodeName]
    states: dict[NodeName, Stamp]  # of the candidates that hold one
    seen: dict[NodeName, Stamp]  # of candidates, in earlier rounds
    elsewhere: dict[NodeName, Stamp]  # of other nodes, now or earlier
    deaf: dict[NodeName, Deaf]  # who does not listen to us

    @classmethod
    def of(
        cls, question: Question, ballots: Ballots, silent: Collection[NodeName], heard: Heard
    ) -> Self:
        voters, candidates = question.voters, question.candidates
        answers = {node: ballots[node] for node in voters if node in ballots}
        counted, astray = sort_out(answers, candidates)
        # A candidate with an empty replica (new, or with a new disk) answers, but its answer
        # says nothing about what the others acknowledged: it is no part of their majority.
        shown = {n: b.stamp for n, b in counted.items() if b.stamp is not None and b.stamp.serial}
        return cls(
            question,
            counted,
            astray,
            pending=voters - answers.keys() - frozenset(silent),
            states={n: stamp for n, stamp in shown.items() if n in candidates},
            seen={n: stamp for n, stamp in heard.seen.items() if n in candidates},
            elsewhere={
                n: stamp
                for n, stamp in (heard.seen | shown).items()
                if n in voters and n not in candidates
            },
            deaf={n: heard.deaf[n] for n in sorted(voters & heard.deaf.keys())},
        )

    @property
    def shown(self) -> dict[NodeName, Stamp]:
        """Return all states, whoever holds them."""
        return self.states | self.elsewhere

    def claim_of(self, node: NodeName) -> Epoch:
        return claimed(self.ballots[node], node in self.question.candidates)

    def naming(self, me: NodeName, *, candidates: bool) -> set[NodeName]:
        """Return who names ``me``; of the ``candidates`` only those who have obeyed it.

        Whoever took over has given orders to candidates, its first commit; to other nodes perhaps
        none yet, so that they granted it an epoch has to do for them.
        """
        if candidates:
            pool = self.question.candidates
            return {node for node, b in self.ballots.items() if b.master == me and node in pool}
        return {node for node, b in self.ballots.items() if me in (b.master, b.holder)}
