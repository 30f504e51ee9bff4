"""What nodes keep free for the failure of a new peer, for all moves of a kind at once.

It is the one amount that depends on both ends of a move, so it is worked out move by move: arrays
have a row per instance and a column per target.
"""

import numpy as np

from coordinator.allocator.arrays import Bools, Floats, Ints
from coordinator.allocator.balancing.departures import Departures
from coordinator.allocator.balancing.fitting import NO_LIMIT
from coordinator.allocator.balancing.step import Step
from coordinator.allocator.model.resources import Demands
from coordinator.allocator.model.terms import WEIGHTS, Term


def add_reserve(
    step: Step,
    left: Departures,
    demands: Demands,
    part: Ints,
    own: tuple[Floats, Floats],
    estimates: Floats,
    ok: Bools,
) -> None:
    """Add what a node keeps free for its new peer: its part in the scores, and whether it can.

    Args:
        step: the group, its score and the targets.
        left: the instances taken off their nodes.
        demands: of these instances.
        part: which of them are looked at.
        own: what leaving adds to the sum of shares and to that of their squares around the mean;
            shape (rows, 1).
        estimates: of the scores, shape (rows, targets).
        ok: whether the move can be made; of the same shape.
    """
    state, score, rows = step.state, step.score, part[:, None]
    if left.new_primary is not None:  # the target keeps it
        nodes, strict = step.targets[None], left.strict[rows]
        there, promised = state.resources.at(nodes), state.promised[step.targets]
        promised = promised[:, left.new_primary[part]].T
    else:
        assert left.dependent is not None, "one of the two keeps it"
        nodes, (less, soft) = left.own[0][0][rows], left.dependent
        there, strict = less.at(rows), soft[rows]
        promised = state.promised[left.own[0][0][part]][:, step.targets]
    now, real = state.resources, demands.count[rows] > 0
    needed = np.where(real, demands.needed[rows], -NO_LIMIT)
    after = np.maximum(there.reserved, promised + needed)
    ok &= (after < there.memory) | there.fails_n1 | ~strict | ~real

    term, online = Term.RESERVED_MEM_CV, score.online[nodes]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (after - now.reserved[nodes]) / now.total_memory[nodes]
    shift = np.where(online, share, 0.0)
    centred = np.where(online, score.before[term, nodes] - score.means[term], 0.0)
    estimates += WEIGHTS[Term.RESERVED_MEM_RTOTAL] * shift
    variance = own[1] + shift * (shift + 2 * centred)
    shift += own[0]
    shift *= shift
    variance /= score.count
    variance -= shift / score.count**2
    variance += score.variances[term]
    np.maximum(variance, 0, out=variance)
    estimates += WEIGHTS[term] * np.sqrt(variance)
    if step.n1_matters:
        failing = np.where(real, there.memory <= after, there.fails_n1) & online
        residents = there.primaries + there.secondaries + demands.count[rows]
        estimates += WEIGHTS[Term.N1_CNT] * (failing * residents - score.before[Term.N1_CNT, nodes])
