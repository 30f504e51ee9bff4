"""A cluster and a request as an allocator program reads them: Ganeti's protocol, version 2.

The counterpart of ``cluster.read_cluster`` and ``requests.read_request``. Figures are those of
the snapshot on which our own engine decides, so that a program sees just the same.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from common.messages import to_builtins
from common.model.cluster import Cluster
from common.model.disk import Disk
from common.model.group import Group
from common.model.instance import AdminState, Instance
from common.model.nic import Nic
from common.model.node import Node
from common.model.parameters import NicParameters, NodeParameters, filled
from common.model.policy import InstancePolicy, wire_policy
from coordinator.allocator.snapshot import Instance as Demand
from coordinator.allocator.snapshot import Node as Shown

VERSION = 2

Json = dict[str, Any]


def write_message(cluster: Cluster, parts: Mapping[str, Json], request: Json) -> str:
    """Put a message together.

    The parts are "nodegroups", "nodes" and "instances", from the functions below. The order of
    their keys counts: programs break ties by it.
    """
    message = {
        "version": VERSION,
        "cluster_name": cluster.name,
        "cluster_tags": list(cluster.tags),
        "enabled_hypervisors": list(cluster.enabled_hypervisors),
        "ipolicy": wire_policy(cluster.ipolicy),
        **parts,
        "request": request,
    }
    return json.dumps(message, ensure_ascii=False)


def write_group(group: Group, policy: InstancePolicy) -> Json:
    """Describe a group; ``policy`` is its own or the cluster's. Its key is its UUID."""
    return {
        "name": group.name,
        "alloc_policy": str(group.alloc_policy),
        "networks": sorted(group.networks),
        "ipolicy": wire_policy(policy),
        "tags": list(group.tags),
    }


def write_node(
    node: Node, shown: Shown, parameters: NodeParameters, on_it: Iterable[Demand]
) -> Json:
    """Describe a node; one that does not answer counts as offline, and then has no figures.

    ``shown`` are its figures, ``parameters`` with every default filled in, ``on_it`` its primary
    instances.
    """
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
        "ndparams": to_builtins(parameters),
    }
    return fields | _figures(shown, tuple(on_it)) if shown.is_live else fields


def write_instance(
    instance: Instance,
    demand: Demand,
    disks: Sequence[Disk],
    nics: Sequence[Nic],
    homes: Sequence[str],
) -> Json:
    """Describe an instance that is there; ``homes`` are names of its nodes, primary first."""
    return _requirements(instance, demand, disks, nics) | {
        "nodes": list(homes),
        "disks_active": instance.has_active_disks,
    }


def ask_for_place(
    instance: Instance,
    demand: Demand,
    disks: Sequence[Disk],
    nics: Sequence[Nic],
    *,
    among: Iterable[str] | None = None,
    group: str | None = None,
) -> Json:
    """Ask where a new instance may go; ``among`` are the only nodes to look at, of one group."""
    request = _requirements(instance, demand, disks, nics) | {
        "type": "allocate",
        "name": instance.name,
        "required_nodes": instance.disk_template.traits.nodes,
        **({"group_name": group} if group else {}),
    }
    return request if among is None else request | {"restrict-to-nodes": sorted(among)}


def ask_for_places(desired: Iterable[Json]) -> Json:
    """Ask where several new instances may go, each as of ``ask_for_place``."""
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
    return {
        "type": "change-group",
        "instances": list(instances),
        "target_groups": list(groups),
    }


def _figures(node: Shown, on_it: tuple[Demand, ...]) -> Json:
    return {
        "total_memory": int(node.total_memory),
        "reserved_memory": node.own_memory,
        "free_memory": node.free_memory,
        "total_disk": int(node.total_disk),
        "free_disk": node.free_disk,
        "total_spindles": node.spindles,
        "free_spindles": node.free_spindles,
        "total_cpus": int(node.total_cpus),
        "reserved_cpus": node.own_cpus,
        "i_pri_memory": sum(demand.memory for demand in on_it),
        "i_pri_up_memory": sum(demand.used_memory for demand in on_it),
    }


def _requirements(
    instance: Instance, demand: Demand, disks: Sequence[Disk], nics: Sequence[Nic]
) -> Json:
    return {
        "tags": list(instance.tags),
        "admin_state": str(AdminState.UP if instance.takes_memory else instance.admin_state),
        "vcpus": demand.vcpus,
        "memory": demand.memory,
        "spindle_use": demand.spindle_use,
        "os": instance.os,
        "nics": [_nic(nic) for nic in nics],
        "disks": [
            {
                "type": str(instance.disk_template),
                "size": disk.size,
                "mode": str(disk.mode),
                "spindles": None,
            }
            for disk in disks
        ],
        "disk_template": str(instance.disk_template),
        "hypervisor": instance.hypervisor,
        "disk_space_total": demand.disk,
    }


def _nic(nic: Nic) -> Json:
    parameters = filled(NicParameters, nic.nicparams, what="a nic")
    fields: Json = {"mac": nic.mac, "ip": nic.ip or None, **to_builtins(parameters)}
    fields["network"] = nic.network or None
    return fields | {"bridge": parameters.link} if parameters.mode == "bridged" else fields
