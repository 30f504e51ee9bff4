"""The model after a placement or moves, for the next question."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace

import numpy as np

from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.resources import NodeResources, demands_of
from coordinator.allocator.model.state import State
from coordinator.allocator.rows import Joined
from coordinator.allocator.snapshot import NOWHERE, Instance


def with_instance(model: ClusterModel, demand: Instance, nodes: tuple[int, ...]) -> ClusterModel:
    """The model of the same cluster with one more instance on ``nodes``, primary first.

    It goes on from the old one rather than being made afresh, as in hail: what a node
    measured counts at the start only.
    """
    state = State(model)
    location = model.location_score(demand, *nodes)
    state.put_primary(demand, nodes[0], location)
    if len(nodes) > 1:
        state.put_secondary(demand, nodes[1], nodes[0])
    after = with_instances(model, [(demand, nodes)], state.resources)
    after.holders, after.crowds = state.holders, state.crowds
    return after


def with_instances(
    model: ClusterModel,
    placed: Sequence[tuple[Instance, tuple[int, ...]]],
    resources: NodeResources,
) -> ClusterModel:
    """The model with more instances.

    Args:
        model: before.
        placed: what came, each with its nodes, primary first.
        resources: the nodes' resources by now.
    """
    demands, homes = [demand for demand, _ in placed], [nodes for _, nodes in placed]
    first = np.array([nodes[0] for nodes in homes], dtype=np.int64)
    second = [nodes[1] if len(nodes) > 1 else NOWHERE for nodes in homes]
    evacuation_load = model.evacuation_load
    for demand, nodes in placed:
        if not demand.forthcoming:
            evacuation_load = evacuation_load.with_instance(demand, np.array(nodes[:1]))
    after = copy(model)
    rows = [
        replace(demand, primary=nodes[0], secondary=nodes[1] if len(nodes) > 1 else NOWHERE)
        for demand, nodes in placed
    ]
    after.snapshot = replace(model.snapshot, instances=Joined(model.snapshot.instances, rows))
    after.primary_of = np.append(model.primary_of, first)
    after.secondary_of = np.append(model.secondary_of, np.array(second, dtype=np.int64))
    after.demands = model.demands.followed_by(demands_of(demands))
    after.real = after.demands.count > 0
    after.tags = Joined(model.tags, [demand.tags for demand in demands])
    for derived in ("peers", "holders", "crowds", "_rows", "_figures"):
        vars(after).pop(derived, None)
    after.evacuation_load, after.resources = evacuation_load, resources
    return after


def with_moved(
    model: ClusterModel, resources: NodeResources, homes: Mapping[int, tuple[int, int]]
) -> ClusterModel:
    """The model with instances elsewhere, as a new beginning.

    Args:
        model: before.
        resources: the nodes' resources by now; they may be changed later on.
        homes: primary and secondary of the instances that may have moved, by index, in the
            order in which they did.
    """
    after = copy(model)
    after.primary_of, after.secondary_of = model.primary_of.copy(), model.secondary_of.copy()
    for index, (primary, secondary) in homes.items():
        if (model.primary_of[index], model.secondary_of[index]) != (primary, secondary):
            after.primary_of[index], after.secondary_of[index] = primary, secondary
            after.arrivals = (*after.arrivals, index)
    for derived in ("peers", "evacuation_load", "holders", "crowds", "_rows", "_figures"):
        vars(after).pop(derived, None)
    after.resources = resources.copy()
    return after
