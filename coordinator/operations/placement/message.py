"""The message for allocator programs, from one look at the cluster."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from common.messages import to_builtins
from common.model.nic import Nic
from common.model.parameters import NicParameters, settled
from coordinator.iallocator.document import (
    ask_for_place,
    write_group,
    write_instance,
    write_message,
    write_node,
)
from coordinator.operations.placement.demands import demand_of
from coordinator.operations.placement.look import Look
from coordinator.operations.placement.promises import PlannedInstance
from coordinator.operations.placement.snapshot import node_parameters
from coordinator.operations.placement.space import nodes_but, shortages
from coordinator.state.config import Config


def message_of(look: Look, request: dict[str, Any]) -> str:
    """Write what a program reads; groups, nodes and instances are in the snapshot's order."""
    config, snapshot = look.config, look.snapshot
    new: dict[str, PlannedInstance] = {one.instance.name: one for one in look.planned}
    instances = {}
    for demand in snapshot.instances:
        present = config.find_instance(demand.name)
        nics = full_nics(config, config.nics_of(present)) if present else ()
        if demand.name in new:
            instance, disks = new[demand.name].instance, new[demand.name].disks
        else:
            instance = config.instance(demand.name)
            disks = config.disks_of(instance)
        homes = [snapshot.nodes[home].name for home in demand.homes]
        instances[demand.name] = write_instance(instance, demand, disks, nics, homes)
    primaries = defaultdict(list)
    for demand in snapshot.instances:
        primaries[demand.primary].append(demand)
    nodes = {}
    for index, shown in enumerate(snapshot.nodes):
        node = config.node(shown.name)
        parameters = node_parameters(config, node)
        nodes[shown.name] = write_node(node, shown, parameters, primaries[index])
    groups = {
        str(group.uuid): write_group(group, config.policy_of(group))
        for group in config.sorted_groups()
    }
    parts = {"nodegroups": groups, "nodes": nodes, "instances": instances}
    return write_message(config.cluster, parts, request)


def ask_to_place(look: Look, planned: PlannedInstance) -> dict[str, Any]:
    """Ask where a new instance may go, among the nodes that have room for its disks."""
    return ask_for_place(
        planned.instance,
        demand_of(look.config, planned, look.pool),
        planned.disks,
        full_nics(look.config, planned.nics),
        among=nodes_but(look, shortages(look, planned.disks)),
        group=None if planned.group is None else look.config.groups[planned.group].name,
    )


def full_nics(config: Config, nics: Sequence[Nic]) -> tuple[Nic, ...]:
    """Return nics with every parameter filled in."""
    default = config.cluster.nicparams  # each group may plug in those of networks otherwise
    every = (settled(NicParameters, default, nic.nicparams) for nic in nics)
    return tuple(
        replace(nic, nicparams=to_builtins(parameters))
        for nic, parameters in zip(nics, every, strict=True)
    )
