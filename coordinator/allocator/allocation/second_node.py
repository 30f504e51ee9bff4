"""A second node for an instance that has one: making it a mirrored one."""

from common.model.template import MIRRORED
from common.record import replace
from coordinator.allocator.allocation.pair import Pairs
from coordinator.allocator.allocation.redundancy import Redundancy
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.state import State
from coordinator.allocator.refusal import Reason
from coordinator.allocator.request import Choice, GroupOutcome


def choose_second_node(
    model: ClusterModel, index: int, *, check_redundancy: bool, ignore_soft_limits: bool
) -> GroupOutcome:
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
    failures, choices = pairs.count_of(primary), tuple[Choice, ...]()
    redundancy = Redundancy(model, everyone, demand, resides=index)
    for nodes, score in pairs.from_best(pairs.allowed([primary], members)):
        if not check_redundancy or redundancy.stays(state, nodes):
            choices = (Choice(tuple(model.names[node] for node in nodes), score),)
            break
        failures[Reason.REDUNDANCY] += 1
    group = model.group_of[primary]
    policy = model.snapshot.groups[group].alloc_policy
    return GroupOutcome(group, policy, choices, len(members) - 1, lambda: failures)
