"""The books after a placement, for the next one of many."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace

import numpy as np

from coordinator.allocator.books.books import Books, demands_of
from coordinator.allocator.books.ledger import Ledger
from coordinator.allocator.books.state import State
from coordinator.allocator.rows import Joined
from coordinator.allocator.snapshot import NOWHERE, Instance


def with_instance(ledger: Ledger, demand: Instance, nodes: tuple[int, ...]) -> Ledger:
    """The books of the same cluster with one more instance on ``nodes``, primary first.

    They go on from the old ones rather than being opened afresh, as in hail: what a node
    measured counts at the start only.
    """
    state = State(ledger)
    location = ledger.location_score(demand, *nodes)
    state.put_primary(demand, nodes[0], location)
    if len(nodes) > 1:
        state.put_secondary(demand, nodes[1], nodes[0])
    after = with_instances(ledger, [(demand, nodes)], state.accounts)
    after.holders, after.crowds = state.books.holders, state.books.crowds
    return after


def with_instances(
    ledger: Ledger, placed: Sequence[tuple[Instance, tuple[int, ...]]], accounts: Books
) -> Ledger:
    """The books with more instances.

    Args:
        ledger: the books before.
        placed: what came, each with its nodes, primary first.
        accounts: the nodes' books by now.
    """
    demands, homes = [demand for demand, _ in placed], [nodes for _, nodes in placed]
    first = np.array([nodes[0] for nodes in homes], dtype=np.int64)
    second = [nodes[1] if len(nodes) > 1 else NOWHERE for nodes in homes]
    freight = ledger.freight
    for demand, nodes in placed:
        if not demand.forthcoming:
            freight = freight.with_instance(demand, np.array(nodes[:1]))
    after = copy(ledger)
    rows = [
        replace(demand, primary=nodes[0], secondary=nodes[1] if len(nodes) > 1 else NOWHERE)
        for demand, nodes in placed
    ]
    after.snapshot = replace(ledger.snapshot, instances=Joined(ledger.snapshot.instances, rows))
    after.primary_of = np.append(ledger.primary_of, first)
    after.secondary_of = np.append(ledger.secondary_of, np.array(second, dtype=np.int64))
    after.demands = ledger.demands.followed_by(demands_of(demands))
    after.real = after.demands.count > 0
    after.tags = Joined(ledger.tags, [demand.tags for demand in demands])
    for derived in ("peers", "holders", "crowds"):
        vars(after).pop(derived, None)
    after.freight, after.accounts = freight, accounts
    return after


def with_moved(ledger: Ledger, accounts: Books, homes: Mapping[int, tuple[int, int]]) -> Ledger:
    """The books with instances elsewhere, as a new beginning.

    Args:
        ledger: the books before.
        accounts: the nodes' books by now; they may be changed later on.
        homes: primary and secondary of the instances that may have moved, by index, in the
            order in which they did.
    """
    after = copy(ledger)
    after.primary_of, after.secondary_of = ledger.primary_of.copy(), ledger.secondary_of.copy()
    for index, (primary, secondary) in homes.items():
        if (ledger.primary_of[index], ledger.secondary_of[index]) != (primary, secondary):
            after.primary_of[index], after.secondary_of[index] = primary, secondary
            after.arrivals = (*after.arrivals, index)
    for derived in ("peers", "freight", "holders", "crowds"):
        vars(after).pop(derived, None)
    after.accounts = accounts.copy()
    return after
