"""The cluster part of a request: groups, nodes, instances, tags.

The order in which things are read is hail's, since the first complaint ends it.
"""

from dataclasses import replace
from typing import Any

from common.errors import InvalidRequest
from common.model.group import AllocationPolicy
from common.model.policy import Bounds, InstancePolicy, Spec
from common.names import MiB
from coordinator.allocator.snapshot import (
    NOWHERE,
    TEMPLATES,
    Group,
    Instance,
    Node,
    Snapshot,
    snapshot_of,
)
from coordinator.iallocator.bulk import Unusual, read_instances, read_nodes
from coordinator.iallocator.fields import (
    Fields,
    Unreadable,
    an_object,
    flag,
    list_of,
    one_of,
    real,
    text,
    texts,
    whole,
)
from coordinator.iallocator.jsontext import pairs_of

_HYPERVISORS = {name: name for name in ("kvm", "xen-pvm", "chroot", "xen-hvm", "lxc", "fake")}
_STATUS = {"up": "running", "down": "ADMIN_down", "offline": "ADMIN_offline"}
_NIC_MODES = (None, "bridged", "routed", "openvswitch")

template = one_of("DiskTemplate", {name: name for name in TEMPLATES}.__getitem__)
_alloc_policy = one_of("AllocPolicy", AllocationPolicy)
_hypervisor = one_of("Hypervisor", _HYPERVISORS.__getitem__)


def read_cluster(message: Fields, *, kvm_node_memory: int) -> Snapshot:
    """Read the cluster of a message.

    Args:
        message: the whole of it.
        kvm_node_memory: MiB that a node keeps for itself if its hypervisor is KVM; 0 to
            believe what it reports.

    Raises:
        InvalidRequest: something is missing or of the wrong type.
    """
    groups = message.get("nodegroups", an_object)
    read_groups = tuple(_group(uuid, value) for uuid, value in pairs_of(groups))
    group_index = {group.uuid: index for index, group in enumerate(read_groups)}
    found = _read_in_bulk(message, read_groups, group_index, kvm_node_memory)
    if found is not None:
        return found
    nodes = message.get("nodes", an_object)
    read_nodes = tuple(_node(name, value, group_index) for name, value in pairs_of(nodes))
    node_index = {node.name: index for index, node in enumerate(read_nodes)}
    instances = message.get("instances", an_object)
    read_instances = tuple(
        _instance(name, value, node_index) for name, value in pairs_of(instances)
    )
    tags = message.get("cluster_tags", texts)
    hypervisors = message.get("enabled_hypervisors", list_of(_hypervisor))
    if kvm_node_memory > 0 and hypervisors[:1] == ("kvm",):
        read_nodes = tuple(
            replace(node, own_memory=kvm_node_memory) if node.is_live else node
            for node in read_nodes
        )
    return Snapshot(groups=read_groups, nodes=read_nodes, instances=read_instances, tags=tags)


def _read_in_bulk(
    message: Fields, groups: tuple[Group, ...], group_index: dict[str, int], kvm_node_memory: int
) -> Snapshot | None:
    """The quick way, where there is nothing to complain of; None if there might be."""
    try:
        hypervisors = message.values["enabled_hypervisors"]
        own = kvm_node_memory if hypervisors[:1] == ["kvm"] and kvm_node_memory > 0 else None
        nodes = read_nodes(message.values, group_index, own_memory=own)
        index = {name: at for at, name in enumerate(nodes.names)}
        instances = read_instances(message.values["instances"], index)
    except (Unusual, KeyError, IndexError, TypeError):
        return None
    tags = message.get("cluster_tags", texts)
    message.get("enabled_hypervisors", list_of(_hypervisor))
    return snapshot_of(groups, nodes, instances, tags)


def read_instance(name: str, fields: Fields) -> Instance:
    """Read what a new or existing instance is like, wherever it is."""
    disk = fields.get("disk_space_total", whole)
    disks = [
        Fields(_object(value), fields.what) for value in fields.get("disks", list_of(_anything))
    ]
    sizes = tuple(each.get("size", whole) for each in disks)
    spindles = [each.find("spindles", whole) for each in disks]
    known = [count for count in spindles if count is not None]
    memory = fields.get("memory", whole)
    vcpus = fields.get("vcpus", whole)
    tags = fields.get("tags", texts)
    kind = fields.get("disk_template", template)
    spindle_use = fields.get("spindle_use", whole)
    nics = fields.get("nics", list_of(_anything))
    networks = frozenset(
        network for nic in nics if (network := _network(name, Fields(_object(nic), fields.what)))
    )
    state, forthcoming = fields.values.get("admin_state"), fields.values.get("forthcoming")
    return Instance(
        name=name,
        memory=memory,
        disk=disk,
        disks=sizes,
        disk_spindles=sum(known) if len(known) == len(spindles) else None,
        vcpus=vcpus,
        tags=tags,
        template=kind,
        spindle_use=spindle_use,
        networks=networks,
        # What cannot be read is as good as absent here; hail does not complain.
        status=_STATUS.get(state, "running") if isinstance(state, str) else "running",
        forthcoming=forthcoming is True,
    )


def _anything(value: Any) -> Any:
    return value


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidRequest("not an object")
    return value


def _network(instance: str, nic: Fields) -> str | None:
    for key in ("mac", "ip"):
        nic.find(key, text)
    if nic.find("mode", text) not in _NIC_MODES:
        raise InvalidRequest(f"invalid NIC mode in instance {instance}")
    for key in ("link", "bridge"):
        nic.find(key, text)
    return nic.find("network", text)


def _group(uuid: str, value: Any) -> Group:
    fields = Fields(_object(value), f"invalid data for group '{uuid}'")
    return Group(
        uuid=uuid,
        name=fields.get("name", text),
        alloc_policy=fields.get("alloc_policy", _alloc_policy),
        networks=fields.get("networks", texts),
        policy=fields.get("ipolicy", _policy),
        tags=fields.get("tags", texts),
    )


def _policy(value: Any) -> InstancePolicy:
    fields = _Nested(an_object(value), "")
    minmax = fields.get("minmax", list_of(_bounds))
    std = fields.get("std", _spec)
    templates = fields.get("disk-templates", list_of(template))
    return InstancePolicy(
        minmax=minmax,
        std=std,
        disk_templates=templates,
        vcpu_ratio=fields.get("vcpu-ratio", real),
        spindle_ratio=fields.get("spindle-ratio", real),
    )


def _bounds(value: Any) -> Bounds:
    fields = _Nested(an_object(value), "")
    return Bounds(min=fields.get("min", _spec), max=fields.get("max", _spec))


def _spec(value: Any) -> Spec:
    fields = _Nested(an_object(value), "")
    return Spec(
        memory_size=MiB(fields.get("memory-size", whole)),
        cpu_count=fields.get("cpu-count", whole),
        disk_size=MiB(fields.get("disk-size", whole)),
        disk_count=fields.get("disk-count", whole),
        nic_count=fields.get("nic-count", whole),
        spindle_use=fields.get("spindle-use", whole),
    )


class _Nested(Fields):
    """An object inside a value; whoever reads the value says where it is."""

    def get(self, key: str, read: Any) -> Any:
        if key not in self.values:
            there = ",".join(f'"{name}"' for name in self.values)
            raise Unreadable(f"key '{key}' not found, object contains only [{there}]")
        try:
            return read(self.values[key])
        except Unreadable as error:
            raise Unreadable(f"Can't parse value for '{key}': {error}") from error


def _node(name: str, value: Any, groups: dict[str, int]) -> Node:
    fields = Fields(_object(value), f"invalid data for node '{name}'")
    offline, drained = fields.get("offline", flag), fields.get("drained", flag)
    group_uuid = fields.get("group", text)
    vm_capable = fields.find("vm_capable", flag)
    parameters = fields.inside("ndparams")
    tags = fields.find("tags", texts) or ()
    if group_uuid not in groups:
        raise InvalidRequest(f"Unknown group '{group_uuid}' for node {name}")
    exclusive = parameters.get("exclusive_storage", flag)
    group = groups[group_uuid]
    if offline or vm_capable is False:
        spindles = 0 if exclusive else parameters.get("spindle_count", whole)
        return Node(
            name=name,
            group=group,
            offline=offline,
            drained=drained,
            vm_capable=vm_capable is not False,
            spindles=spindles,
            exclusive=exclusive,
            tags=tags,
        )
    total_spindles = fields.get("total_spindles", whole) if exclusive else 0
    free_spindles = fields.get("free_spindles", whole)
    total_memory = fields.get("total_memory", real)
    own_memory = fields.get("reserved_memory", whole)
    free_memory = fields.get("free_memory", whole)
    total_disk = fields.get("total_disk", real)
    free_disk = fields.get("free_disk", whole)
    total_cpus = fields.get("total_cpus", real)
    own_cpus = fields.get("reserved_cpus", whole)
    if not exclusive:
        total_spindles = parameters.get("spindle_count", whole)
    return Node(
        name=name,
        group=group,
        total_memory=total_memory,
        own_memory=own_memory,
        free_memory=free_memory,
        total_disk=total_disk,
        free_disk=free_disk,
        total_cpus=total_cpus,
        own_cpus=own_cpus,
        drained=drained,
        spindles=total_spindles,
        free_spindles=free_spindles,
        exclusive=exclusive,
        tags=tags,
    )


def _instance(name: str, value: Any, nodes: dict[str, int]) -> Instance:
    fields = Fields(_object(value), f"invalid data for instance '{name}'")
    instance = read_instance(name, fields)
    homes = fields.get("nodes", texts)
    if not homes:
        raise InvalidRequest(f"empty node list for instance {name}")
    primary = _home(name, homes[0], nodes)
    secondary = _home(name, homes[1], nodes) if len(homes) > 1 else NOWHERE
    return replace(instance, primary=primary, secondary=secondary)


def _home(instance: str, node: str, nodes: dict[str, int]) -> int:
    if node not in nodes:
        raise InvalidRequest(f"Unknown node '{node}' for instance {instance}")
    return nodes[node]
