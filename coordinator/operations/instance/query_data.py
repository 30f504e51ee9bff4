"""Tell all about instances, as Ganeti's ``gnt-instance info`` asks for it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

from common.errors import GntError
from common.messages import Order, to_builtins
from common.model.hypervisors import HYPERVISORS
from common.model.instance import AdminState, Instance
from common.model.nic import Nic
from common.model.parameters import NicParameters, settled, sound
from common.names import InstanceId, InstanceName, NodeId
from common.noderpc.guest_agent import in_lists
from common.noderpc.instances import GuestReport, Instances
from coordinator.locks.names import Wanted
from coordinator.operating_systems.hypervisor_layer import base_hvparams
from coordinator.operating_systems.parameters import merged_parameters
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.instance.disk_status import OnNode, describe_disk, look_at_disks
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import hidden
from coordinator.operations.specs import backend
from coordinator.state.config import Config


class QueryDataPlan(Order):
    told: dict[str, dict[str, Any]]


@operation("OP_INSTANCE_QUERY_DATA")
class QueryInstanceData(Operation[None, QueryDataPlan], kw_only=True):
    """Tell all about instances; what nodes that do not answer would tell is null."""

    instances: Annotated[tuple[InstanceName, ...], hidden("default: all")] = ()
    static: Annotated[bool, hidden("do not ask the nodes")] = False

    def locks(self, config: Config, _: None) -> Wanted:  # noqa: ARG002 -- it only looks
        return wanted()

    async def prepare(self, cluster: Cluster, _: None) -> QueryDataPlan:
        config = cluster.config
        named = tuple(config.instance(name) for name in self.instances)
        chosen = named or config.sorted_instances()
        guests, disks = _Guests(), dict[NodeId, OnNode]()
        if not self.static:
            there = tuple(each for each in chosen if not each.forthcoming)
            guests = await _look_at_guests(cluster, there)
            for node, told in (await look_at_disks(cluster, there)).items():
                if isinstance(told, GntError):
                    cluster.log(f"{config.nodes[node].name} did not tell of its disks: {told}")
                else:
                    disks[node] = told
        return QueryDataPlan(told={i.name: _describe(config, i, guests, disks) for i in chosen})

    def result(self, plan: QueryDataPlan) -> dict[str, dict[str, Any]]:
        return plan.told


class _Guests(NamedTuple):
    """The guests that nodes told of, and which nodes did so."""

    answered: frozenset[NodeId] = frozenset()
    reports: Mapping[InstanceId, GuestReport] = MappingProxyType({})


async def _look_at_guests(cluster: Cluster, instances: tuple[Instance, ...]) -> _Guests:
    config = cluster.config
    at = {instance.uuid: instance.primary_node for instance in instances}
    asked = [n for n in config.sorted_nodes() if n.uuid in at.values() and not n.offline]
    answers = await cluster.each(
        {node.uuid: cluster.call(Instances, node).guests() for node in asked}
    )
    answered, reports = set(), dict[InstanceId, GuestReport]()
    for node in asked:
        told = answers[node.uuid]
        if isinstance(told, GntError):
            cluster.log(f"{node.name} did not tell of its guests: {told}")
            continue
        answered.add(node.uuid)
        reports |= {guest.id: guest for guest in told if at.get(guest.id) == node.uuid}
    return _Guests(frozenset(answered), reports)


def _describe(
    config: Config, instance: Instance, guests: _Guests, disks: Mapping[NodeId, OnNode]
) -> dict[str, Any]:
    home = config.nodes[instance.primary_node]
    others = [config.nodes[uuid] for uuid in config.secondary_nodes(instance)]
    cluster, kind = config.cluster, HYPERVISORS.get(instance.hypervisor)
    base = base_hvparams(cluster, instance.hypervisor, instance.os)
    guest = guests.reports.get(instance.uuid)
    actual = sound(kind, base, instance.hvparams) if kind else {}
    has_vnc = kind is not None and kind.has_vnc(actual)
    return {
        "name": instance.name,
        "config_state": instance.admin_state,
        "run_state": _run_state(instance, guests),
        "pnode": home.name,
        "pnode_group_uuid": home.group,
        "pnode_group_name": config.groups[home.group].name,
        "snodes": [node.name for node in others],
        "snodes_group_uuids": [node.group for node in others],
        "snodes_group_names": [config.groups[node.group].name for node in others],
        "os": instance.os,
        "guest_interfaces": in_lists(guest.interfaces) if guest else None,
        "nics": [_describe_nic(config, instance, nic) for nic in config.nics_of(instance)],
        "disk_template": instance.disk_template,
        "disks": [
            describe_disk(config, instance, index, disk, disks)
            for index, disk in enumerate(config.disks_of(instance))
        ],
        "hypervisor": instance.hypervisor,
        "network_port": instance.network_port or (_port(guest) if has_vnc else None),
        "hv_instance": instance.hvparams,
        "hv_actual": actual,
        "be_instance": instance.beparams,
        "be_actual": to_builtins(backend(config, instance)),
        "os_instance": instance.osparams,
        "os_actual": merged_parameters(cluster, instance.os, instance.osparams),
        "serial_no": instance.serial_no,
        "mtime": instance.mtime,
        "ctime": instance.ctime,
        "uuid": instance.uuid,
    }


def _run_state(instance: Instance, guests: _Guests) -> str | None:
    if instance.forthcoming:
        return "down"
    if instance.primary_node not in guests.answered:
        return None
    guest = guests.reports.get(instance.uuid)
    if guest is not None and guest.state.may_run:
        return "up"
    return "offline" if instance.admin_state is AdminState.OFFLINE else "down"


def _port(guest: GuestReport | None) -> int:
    """Return the port of its display; 0 where it has none yet, since clients reckon with it."""
    _, _, port = guest.display.rpartition(":") if guest else ("", "", "")
    return int(port) if port.isdecimal() else 0


def _describe_nic(config: Config, instance: Instance, nic: Nic) -> list[Any]:
    """Return a nic as Ganeti tells hooks of it; the last two are its network, and all about it."""
    parameters = settled(NicParameters, *config.nic_layers(nic, instance.primary_node))
    network = config.networks.get(nic.network)
    about = network and {"name": network.name, "uuid": network.uuid, "network": network.network}
    told = (parameters.mode, parameters.link, parameters.vlan)
    return [nic.name or None, nic.uuid, nic.ip or None, nic.mac, *told, nic.network or None, about]
