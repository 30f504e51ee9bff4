"""The best of a few nodes for one instance, tried one after the other without arrays.

While nodes are emptied in a simulation this is asked thousands of times.
"""

from math import isfinite
from typing import NamedTuple

from coordinator.allocator.arrays import Ints
from coordinator.allocator.model.row_score import RowScore
from coordinator.allocator.model.score import figures_of_row
from coordinator.allocator.model.state import State
from coordinator.allocator.policy import check_policy
from coordinator.allocator.snapshot import Instance

_MOST = 32  # nodes scored together; for more, arrays are faster


class Best(NamedTuple):
    """The node to take, None if none fits, and what the instance adds to its location score."""

    target: int | None
    location: int


def best_of_few(
    state: State, demand: Instance, targets: Ints, scored: Ints, *, is_move: bool
) -> Best | None:
    """The last of the targets that are best, soft limits aside.

    Args:
        state: the cluster as it stands.
        demand: the instance.
        targets: rising node indices, among the scored.
        scored: rising indices of the nodes whose score counts.
        is_move: whether the instance is moved rather than made anew, which policies forbid.

    Returns:
        None if there are too many nodes, or scores that are no numbers.
    """
    if len(scored) > _MOST:
        return None
    nodes, model = scored.tolist(), state.model
    crowds = state.crowds_of(scored)
    score = RowScore(
        [state.figures(node) for node in nodes],
        [bool(model.usable[node]) for node in nodes],
        crowds.total() - len(crowds),
    )
    position = {node: at for at, node in enumerate(nodes)}
    desired = model.rules.desired_locations(demand.tags)
    best, lowest = Best(None, 0), float("inf")
    for node in targets.tolist():
        if not is_move and _is_forbidden(state, demand, node):
            continue
        location = len(desired - model.location_tags[node]) if desired else 0
        code, after = state.with_primary(demand, node, location, force=True)
        if code:
            continue
        crowding = state.crowding_on(demand, crowds, node)
        value = score.after(position[node], figures_of_row(after), crowding)
        if not isfinite(value):
            return None
        if value <= lowest:
            best, lowest = Best(node, location), value
    return best


def _is_forbidden(state: State, demand: Instance, node: int) -> bool:
    model = state.model
    policy = model.snapshot.groups[int(model.group_of[node])].policy
    return bool(check_policy(policy, demand, exclusive=bool(model.exclusive[node])))
