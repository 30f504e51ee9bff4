"""Where an instance that has to leave a node goes: every target at once.

The target that leaves the scored nodes balanced best wins, the last among equals.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from coordinator.allocator.allocation.single import Singles
from coordinator.allocator.arrays import Floats, Ints
from coordinator.allocator.model.occupy import add_secondary
from coordinator.allocator.model.score import Changed, Score, figures
from coordinator.allocator.model.state import State
from coordinator.allocator.model.terms import Term
from coordinator.allocator.rank import from_best
from coordinator.allocator.refusal import Reason
from coordinator.allocator.relocation.assignment import Assignment
from coordinator.allocator.snapshot import Instance


@dataclass(frozen=True, slots=True)
class Targets:
    """What each target would do.

    Attributes:
        nodes: indices of the targets, rising.
        codes: ``Reason`` per target.
        best: the one to take; None when all refuse.
    """

    nodes: Ints
    codes: Ints
    best: int | None


def new_homes(
    state: State,
    demand: Instance,
    assignment: Assignment,
    targets: Ints,
    scored: Ints,
    *,
    force: bool,
) -> Targets:
    """Where an instance on shared storage could run instead."""
    model = state.model
    allowed = model.may_migrate(assignment.primary, targets.tolist())
    work = state.copy()
    work.take_primary(demand, assignment.primary, assignment.location)
    singles = Singles.of(
        work,
        work.scope(scored),
        targets[allowed],
        demand,
        location=model.unmet_locations(demand, targets[allowed]),
        force=force or not model.usable[assignment.primary],
    )
    codes = np.full(len(targets), Reason.MIGRATION, dtype=np.int64)
    codes[allowed] = singles.codes
    return Targets(targets, codes, _first(singles.from_best(is_move=True)))


def new_secondaries(
    state: State,
    demand: Instance,
    assignment: Assignment,
    targets: Ints,
    scored: Ints,
    *,
    force: bool,
) -> Targets:
    """Where the second copy of an instance could be instead."""
    model, primary = state.model, assignment.primary
    force = force or not model.usable[assignment.secondary]
    work = state.copy()
    codes, after = add_secondary(
        work.at(targets), demand, promised=work.promised(targets, primary), force=force
    )
    # The model of the primary are gone through as well, as hail does: it may not pass, and
    # whether it fails N+1 is found out anew.
    work.take_secondary(demand, assignment.secondary, primary)
    work.take_primary(demand, primary, assignment.location)
    unmet = model.location_score(demand, primary)
    refused = work.put_primary(demand, primary, unmet)
    codes = np.where((codes == 0) & bool(refused), refused, codes)

    changed = figures(after)
    if model.usable[primary] and not demand.forthcoming and primary in scored:
        changed[Term.LOCATION_SCORE] += shared_with(state, primary, targets)
    choices = np.flatnonzero(codes == 0)
    changes = Changed(
        np.searchsorted(scored, targets[choices])[None],
        changed[:, None, choices],
        np.zeros(len(choices), dtype=np.int64),
    )
    best = _first(ranked(work.scope(scored).standing, changes))
    return Targets(targets, codes, None if best is None else int(targets[choices[best]]))


def shared_with(state: State, node: int, others: Ints) -> Ints:
    """How many location tags a node has in common with each of others."""
    tags = state.model.location_tags
    return np.array([len(tags[node] & tags[other]) for other in others.tolist()], dtype=np.int64)


def ranked(standing: Score, changes: Changed) -> Iterator[tuple[int, float]]:
    """Yield (candidate, score), the best first, the last among equals."""

    def exact(some: Ints) -> Floats:
        return standing.exact(changes.at(some))

    return from_best(standing.estimates(changes), exact, last_if_nan=True)


def _first(options: Iterator[tuple[int, float]]) -> int | None:
    return next((choice for choice, _ in options), None)
