"""A second node for an instance that has one: making it a mirrored one."""

from collections.abc import Mapping
from types import MappingProxyType

from common.model.template import MIRRORED
from common.record import Record, replace
from coordinator.allocator.allocation.pair import Pairs
from coordinator.allocator.allocation.redundancy import Redundancy
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.state import State
from coordinator.allocator.refusal import Reason


class SecondNode(Record):
    """The outcome; counts are of the nodes tried.

    Attributes:
        node: the one to take; None when none will do.
        score: of the whole cluster with it.
    """

    node: int | None
    score: float = 0.0
    successes: int = 0
    failures: Mapping[Reason, int] = MappingProxyType({})


def choose_second_node(
    model: ClusterModel, index: int, *, check_redundancy: bool, ignore_soft_limits: bool
) -> SecondNode:
    """Choose among all other nodes of its group, offline ones included, as hail does.

    ``index`` is of the instance. Every node has to stay one that could be emptied, if
    ``check_redundancy``; soft limits are those of the node where it is.
    """
    instance, primary = model.snapshot.instances[index], model.primary_of[index]
    demand = replace(instance, template=MIRRORED)
    state = State(model)
    state.take_primary(instance, primary, model.location_score(instance, primary))
    everyone = range(model.size)
    members = model.groups[model.group_of[primary]]
    scope = state.scope(everyone, for_pairs=True)
    pairs = Pairs(state, scope, members, demand, force=ignore_soft_limits)
    failures = pairs.count_of(primary)
    left = len(members) - 1 - sum(failures.values())
    allowed = pairs.allowed([primary], members)
    redundancy = Redundancy(model, everyone, demand, resides=index)
    for nodes, score in pairs.from_best(allowed):
        if not check_redundancy or redundancy.stays(state, nodes):
            return SecondNode(nodes[1], score, left, failures)
        left -= 1
        failures[Reason.REDUNDANCY] += 1
    return SecondNode(None, failures=failures)
