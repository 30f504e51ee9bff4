"""What nodes keep free for the failure of a new peer, for all moves of a kind at once.

It is the one amount that depends on both ends of a move, so it is worked out move by move: arrays
have a row per instance and a column per target.
"""

from dataclasses import dataclass

import numpy as np

from coordinator.allocator.arrays import Bools, Floats, Ints
from coordinator.allocator.balancing.step import Step
from coordinator.allocator.model.resources import NodeResources
from coordinator.allocator.model.score import Score
from coordinator.allocator.model.terms import WEIGHTS, Term


@dataclass(frozen=True, slots=True)
class Holders:
    """The nodes that keep memory free, before they do; memory in MiB.

    Arrays that follow from the holder alone have shape (1, targets) if it is the target, and
    (instances, 1) if it is a node of the instance; they broadcast to (instances, targets).

    Attributes:
        nodes: their positions.
        before: what they keep free now, in the score as it stands.
        reserved, memory, fails_n1: as of ``NodeResources``, once the instance has left.
        residents: how many instances they have then, as primary or secondary.
        promised: shape (instances, targets): what they keep free for the peer already.
        strict: shape (instances, 1): whether soft limits count.
    """

    score: Score
    nodes: Ints
    before: Ints
    total: Floats
    reserved: Ints
    memory: Ints
    fails_n1: Bools
    residents: Ints
    promised: Ints
    strict: Bools

    @classmethod
    def of_targets(cls, step: Step, promised: Ints, strict: Bools) -> "Holders":
        """The targets keep it."""
        there = step.target_resources
        return cls._of(step, step.targets, there, promised, strict, np.s_[None, :])

    @classmethod
    def of_own(
        cls, step: Step, nodes: Ints, resources: NodeResources, promised: Ints, strict: Bools
    ) -> "Holders":
        """A node of each instance keeps it; ``nodes`` and ``resources`` are an element each."""
        return cls._of(step, nodes, resources, promised, strict, np.s_[:, None])

    @classmethod
    def _of(
        cls,
        step: Step,
        nodes: Ints,
        resources: NodeResources,
        promised: Ints,
        strict: Bools,
        shape: tuple[slice | None, slice | None],
    ) -> "Holders":
        now = step.state.resources
        return cls(
            score=step.score,
            nodes=nodes[shape],
            before=now.reserved[nodes][shape],
            total=now.total_memory[nodes][shape],
            reserved=resources.reserved[shape],
            memory=resources.memory[shape],
            fails_n1=resources.fails_n1[shape],
            residents=(resources.primaries + resources.secondaries)[shape],
            promised=promised,
            strict=strict[:, None],
        )

    def reserved_with(self, needed: Ints) -> Ints:
        """What each keeps free once an instance that needs so much is there, too."""
        after: Ints = np.maximum(self.reserved, self.promised + needed)
        return after

    def can_keep(self, after: Ints) -> Bools:
        """Whether that leaves them as well off as they are, where soft limits count."""
        fits: Bools = (after < self.memory) | self.fails_n1 | ~self.strict
        return fits

    def add_to(self, estimates: Floats, after: Ints, own: tuple[Floats, Floats]) -> None:
        """Add what the terms for memory that is kept free come to.

        Args:
            estimates: shape (instances, targets).
            after: what is kept free afterwards, of the same shape.
            own: what leaving adds to the sum of shares and to that of their squares around the
                mean; shape (instances, 1).
        """
        score, term = self.score, Term.RESERVED_MEM_CV
        online = score.online[self.nodes]
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = np.where(online, (after - self.before) / self.total, 0.0)
        centred = np.where(online, score.before[term, self.nodes] - score.means[term], 0.0)
        estimates += WEIGHTS[Term.RESERVED_MEM_RTOTAL] * shift
        variance = own[1] + shift * (shift + 2 * centred)
        shift += own[0]
        shift *= shift
        variance /= score.count
        variance -= shift / score.count**2
        variance += score.variances[term]
        np.maximum(variance, 0, out=variance)
        estimates += WEIGHTS[term] * np.sqrt(variance)

    def add_failing(self, estimates: Floats, failing: Bools, counts: Ints) -> None:
        """Add what it comes to that some then lack memory for a failover.

        Args:
            estimates: shape (instances, targets).
            failing: whether they do, of the same shape.
            counts: 1 per instance that is there already, else 0; shape (instances, 1).
        """
        weight, score = WEIGHTS[Term.N1_CNT], self.score
        failing = failing & score.online[self.nodes]
        was = score.before[Term.N1_CNT, self.nodes]
        estimates += weight * (failing * (self.residents + counts) - was)
