"""A second node for an instance that has one: making it a mirrored one."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from common.model.template import DiskTemplate
from coordinator.allocator.arrays import Bools
from coordinator.allocator.books.ledger import Ledger
from coordinator.allocator.books.state import State
from coordinator.allocator.placing.capacity import Redundancy
from coordinator.allocator.placing.pair import Pairs
from coordinator.allocator.refusal import Reason


@dataclass(frozen=True, slots=True)
class SecondNode:
    """The outcome; counts are of the nodes tried.

    Attributes:
        node: the one to take; None when none will do.
        score: of the whole cluster with it.
    """

    node: int | None
    score: float = 0.0
    successes: int = 0
    failures: Mapping[Reason, int] = field(default_factory=dict)


def choose_second_node(
    ledger: Ledger, index: int, *, check_redundancy: bool, ignore_soft_limits: bool
) -> SecondNode:
    """Choose among all other nodes of its group, offline ones included, as hail does.

    Args:
        ledger: the books.
        index: of the instance.
        check_redundancy: whether every node has to stay one that could be emptied.
        ignore_soft_limits: of the node where it is.
    """
    instance, primary = ledger.snapshot.instances[index], int(ledger.primary_of[index])
    demand = replace(instance, template=DiskTemplate.DRBD)
    state = State(ledger)
    state.take_primary(instance, primary, ledger.location_score(instance, primary))
    everyone = np.arange(ledger.size)
    members = np.flatnonzero(ledger.group_of == ledger.group_of[primary])
    pairs = Pairs(state, state.scope(everyone), members, demand, force=ignore_soft_limits)
    failures = pairs.count_of(primary)
    left = len(members) - 1 - sum(failures.values())
    allowed: Bools = np.zeros((len(pairs.primaries), len(members)), dtype=np.bool_)
    allowed[pairs.primaries == primary] = members != primary
    redundancy = Redundancy(ledger, everyone, demand, resides=index)
    for nodes, score in pairs.from_best(allowed, None):
        if not check_redundancy or redundancy.stays(state, nodes):
            return SecondNode(nodes[1], score, left, failures)
        left -= 1
        failures[Reason.REDUNDANCY] += 1
    return SecondNode(None, failures=failures)
