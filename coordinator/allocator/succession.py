"""The books after a placement, for the next one of many."""

from collections.abc import Mapping
from copy import copy
from dataclasses import replace

import numpy as np

from common.names import NodeName
from coordinator.allocator.ledger import NOWHERE, Ledger
from coordinator.allocator.picture import Demand, InstancePicture
from coordinator.allocator.state import State


def with_instance(ledger: Ledger, demand: Demand, nodes: tuple[int, ...]) -> Ledger:
    """The books of the same cluster with one more instance on ``nodes``, primary first.

    They go on from the old ones rather than being opened afresh, as in hail: what a node
    measured counts at the start only.
    """
    state = State(ledger)
    location = ledger.location_score(demand, *nodes)
    state.put_primary(demand, nodes[0], location)
    secondary = nodes[1] if len(nodes) > 1 else NOWHERE
    if secondary != NOWHERE:
        state.put_secondary(demand, secondary, nodes[0])

    names: tuple[NodeName, ...] = tuple(ledger.names[node] for node in nodes)
    values = {name: getattr(demand, name) for name in Demand.__slots__}
    instance = InstancePicture(
        **values, primary=names[0], secondary=names[1] if len(names) > 1 else None
    )
    after = copy(ledger)
    after.picture = replace(ledger.picture, instances=(*ledger.picture.instances, instance))
    after.primary_of = np.append(ledger.primary_of, nodes[0])
    after.secondary_of = np.append(ledger.secondary_of, secondary)
    after.real = np.append(ledger.real, not demand.forthcoming)
    _take_over(after, state)
    return after


def with_moved(ledger: Ledger, state: State, seats: Mapping[int, tuple[int, int]]) -> Ledger:
    """The books of ``state`` as a new beginning.

    Args:
        ledger: from which the state set out.
        state: the books by now.
        seats: primary and secondary of the instances that may have moved, by index.
    """
    after = copy(ledger)
    after.primary_of, after.secondary_of = ledger.primary_of.copy(), ledger.secondary_of.copy()
    for index, (primary, secondary) in seats.items():
        after.primary_of[index], after.secondary_of[index] = primary, secondary
    _take_over(after, state.copy())
    return after


def _take_over(ledger: Ledger, state: State) -> None:
    vars(ledger).pop("peers", None)
    ledger.accounts = state.books.accounts
    ledger.holders = state.books.holders
    ledger.crowds = state.books.crowds
