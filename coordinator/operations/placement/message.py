"""The message for allocator programs, from one look at the cluster: Ganeti's protocol, version 2.

The counterpart of ``iallocator.cluster.read_cluster`` and ``iallocator.requests.read_request``.
Figures are those of the snapshot on which our own engine decides, so that a program sees just the
same.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from common.messages import to_builtins
from common.model.disk import Disk
from common.model.group import Group
from common.model.instance import AdminState, Instance
from common.model.nic import Nic
from common.model.parameters import NicParameters, settled
from common.model.policy import wire_policy
from coordinator.allocator.snapshot import Instance as Demand
from coordinator.allocator.snapshot import Node as Shown
from coordinator.operations.placement.demands import demand_of, node_parameters
from coordinator.operations.placement.look import Look
from coordinator.operations.placement.promises import PlannedInstance
from coordinator.operations.placement.space import nodes_but, shortages
from coordinator.state.config import Config

Json = dict[str, Any]


def message_of(look: Look, request: Json) -> str:
    """Write what a program reads.

    Groups, nodes and instances are in the snapshot's order, which counts: programs break ties by
    it.
    """
    config, snapshot, cluster = look.config, look.snapshot, look.config.cluster
    new: dict[str, PlannedInstance] = {one.instance.name: one for one in look.planned}
    instances, primaries = {}, dict[int, list[Demand]]()
    for demand in snapshot.instances:
        homes = [snapshot.nodes[home].name for home in demand.homes]
        instances[demand.name] = _instance(config, new.get(demand.name), demand, homes)
        primaries.setdefault(demand.primary, []).append(demand)
    message = {
        "version": 2,
        "cluster_name": cluster.name,
        "cluster_tags": list(cluster.tags),
        "enabled_hypervisors": list(cluster.enabled_hypervisors),
        "ipolicy": wire_policy(cluster.ipolicy),
        "nodegroups": {group.uuid: _group(config, group) for group in config.sorted_groups()},
        "nodes": {
            shown.name: _node(config, shown, primaries.get(index, ()))
            for index, shown in enumerate(snapshot.nodes)
        },
        "instances": instances,
        "request": request,
    }
    return json.dumps(message, ensure_ascii=False)


def ask_to_place(look: Look, planned: PlannedInstance) -> Json:
    """Ask where a new instance may go, among the nodes that have room for its disks."""
    instance, config = planned.instance, look.config
    demand = demand_of(config, planned, look.pool)
    request = _requirements(config, instance, demand, planned.disks, planned.nics) | {
        "type": "allocate",
        "name": instance.name,
        "required_nodes": instance.disk_template.traits.nodes,
    }
    if planned.group is not None:
        request["group_name"] = config.groups[planned.group].name
    among = nodes_but(look, shortages(look, planned))
    return request if among is None else request | {"restrict-to-nodes": sorted(among)}


def ask_for_places(desired: Iterable[Json]) -> Json:
    """Ask where several new instances may go, each as of ``ask_to_place``."""
    return {"type": "multi-allocate", "instances": list(desired)}


def ask_for_move(instance: Instance, disks: Sequence[Disk], home: str) -> Json:
    """Ask for another node instead of ``home``.

    That is where an instance on shared storage runs, or the secondary node of a mirrored one.
    """
    sizes = tuple(disk.size for disk in disks)
    return {
        "type": "relocate",
        "name": instance.name,
        "required_nodes": 1,
        "disk_space_total": instance.disk_template.traits.disk_space(sizes),
        "relocate_from": [home],
    }


def ask_to_evacuate(instances: Iterable[str], mode: str) -> Json:
    """Ask how instances get off a node; ``mode`` is Ganeti's."""
    return {"type": "node-evacuate", "instances": list(instances), "evac_mode": mode}


def ask_for_group(instances: Iterable[str], groups: Iterable[str]) -> Json:
    """Ask how instances get to one of the groups, or to any other group if none is named."""
    return {"type": "change-group", "instances": list(instances), "target_groups": list(groups)}


def _group(config: Config, group: Group) -> Json:
    return {
        "name": group.name,
        "alloc_policy": str(group.alloc_policy),
        "networks": sorted(group.networks),
        "ipolicy": wire_policy(config.policy_of(group)),
        "tags": list(group.tags),
    }


def _node(config: Config, shown: Shown, on_it: Sequence[Demand]) -> Json:
    """Describe a node; one that does not answer counts as offline, and then has no figures.

    ``shown`` are its figures, ``on_it`` its primary instances.
    """
    node = config.node(shown.name)
    fields: Json = {
        "tags": list(node.tags),
        "primary_ip": node.primary_ip,
        "secondary_ip": node.secondary_ip or node.primary_ip,
        "offline": node.vm_capable and shown.offline,
        "drained": node.drained,
        "master_candidate": node.master_candidate,
        "group": node.group,
        "master_capable": node.master_capable,
        "vm_capable": node.vm_capable,
        "ndparams": to_builtins(node_parameters(config, node)),
    }
    if not shown.is_live:
        return fields
    return fields | {
        "total_memory": int(shown.total_memory),
        "reserved_memory": shown.own_memory,
        "free_memory": shown.free_memory,
        "total_disk": int(shown.total_disk),
        "free_disk": shown.free_disk,
        "total_spindles": shown.spindles,
        "free_spindles": shown.free_spindles,
        "total_cpus": int(shown.total_cpus),
        "reserved_cpus": shown.own_cpus,
        "i_pri_memory": sum(demand.memory for demand in on_it),
        "i_pri_up_memory": sum(demand.used_memory for demand in on_it),
    }


def _instance(
    config: Config, new: PlannedInstance | None, demand: Demand, homes: Sequence[str]
) -> Json:
    """Describe an instance that is there, or comes as ``new``, on the nodes of these names."""
    present = config.find_instance(demand.name)
    instance = new.instance if new else config.instance(demand.name)
    disks = new.disks if new else config.disks_of(instance)
    nics = config.nics_of(present) if present else ()
    return _requirements(config, instance, demand, disks, nics) | {
        "nodes": list(homes),
        "disks_active": instance.has_active_disks,
    }


def _requirements(
    config: Config, instance: Instance, demand: Demand, disks: Sequence[Disk], nics: Sequence[Nic]
) -> Json:
    template = str(instance.disk_template)
    return {
        "tags": list(instance.tags),
        "admin_state": str(AdminState.UP if instance.takes_memory else instance.admin_state),
        "vcpus": demand.vcpus,
        "memory": demand.memory,
        "spindle_use": demand.spindle_use,
        "os": instance.os,
        "nics": [_nic(config, nic) for nic in nics],
        "disks": [
            {
                "type": template,
                "size": disk.size,
                "mode": str(disk.mode),
                "spindles": disk.spindles,
            }
            for disk in disks
        ],
        "disk_template": template,
        "hypervisor": instance.hypervisor,
        "disk_space_total": demand.disk,
    }


def _nic(config: Config, nic: Nic) -> Json:
    # Each group may plug in those of networks otherwise; a program is told of the cluster's way.
    parameters = settled(NicParameters, config.cluster.nicparams, nic.nicparams)
    fields: Json = {"mac": nic.mac, "ip": nic.ip or None, **to_builtins(parameters)}
    fields["network"] = nic.network or None
    return fields | {"bridge": parameters.link} if parameters.mode == "bridged" else fields
