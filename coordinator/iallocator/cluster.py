"""The cluster part of a request: groups, nodes, instances, tags.

The order in which things are read is hail's, since the first complaint ends it.
"""

from __future__ import annotations

from common.errors import InvalidRequest
from common.model.allocation_policy import AllocationPolicy
from common.record import fields_of
from coordinator.allocator.policy import Bounds, InstancePolicy, Spec
from coordinator.allocator.snapshot import Group, instance_of, snapshot_of
from coordinator.iallocator.fields import (
    Fields,
    an_object,
    list_of,
    one_of,
    real,
    text,
    texts,
    value_in,
    whole,
)
from coordinator.iallocator.jsontext import pairs_of
from coordinator.iallocator.table import template
from coordinator.iallocator.tables import read_instances, read_new_instance, read_nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from coordinator.allocator.snapshot import Instance, Snapshot

_HYPERVISORS = {name: name for name in ("kvm", "xen-pvm", "chroot", "xen-hvm", "lxc", "fake")}

_alloc_policy = one_of("AllocPolicy", AllocationPolicy)
_hypervisor = one_of("Hypervisor", _HYPERVISORS.__getitem__)


def read_message(value: Any) -> Fields:
    """See what was read from JSON as a message.

    Raises:
        InvalidRequest: it is none.
    """
    Fields.of(value, "Parsing input IAllocator message")
    return Fields(value, "invalid iallocator message")


def read_cluster(message: Fields, *, kvm_node_memory: int) -> Snapshot:
    """Read the cluster of a message.

    ``kvm_node_memory`` are the MiB that a node keeps for itself if its hypervisor is KVM; 0 to
    believe what it reports.

    Raises:
        InvalidRequest: something is missing or of the wrong type.
    """
    found = pairs_of(message.get("nodegroups", an_object))
    groups = tuple(_group(uuid, value) for uuid, value in found)
    group_index = {group.uuid: index for index, group in enumerate(groups)}
    nodes = read_nodes(message.get("nodes", an_object), group_index)
    node_index = {name: index for index, name in enumerate(nodes.names)}
    instances = read_instances(message.get("instances", an_object), node_index)
    tags = message.get("cluster_tags", texts)
    hypervisors = message.get("enabled_hypervisors", list_of(_hypervisor))
    if kvm_node_memory > 0 and hypervisors[:1] == ("kvm",):
        states = zip(nodes.offline, nodes.vm_capable, strict=True)
        nodes.own_memory = [0 if gone or not able else kvm_node_memory for gone, able in states]
    return snapshot_of(groups, nodes, instances, tags)


def read_instance(name: str, fields: Fields) -> Instance:
    """Read what a new instance is like."""
    return instance_of(read_new_instance(name, fields), 0)


def _group(uuid: str, value: Any) -> Group:
    if not isinstance(value, dict):
        raise InvalidRequest("not an object")
    fields = Fields(value, f"invalid data for group '{uuid}'")
    return Group(
        uuid=uuid,
        name=fields.get("name", text),
        alloc_policy=fields.get("alloc_policy", _alloc_policy),
        networks=fields.get("networks", texts),
        policy=fields.get("ipolicy", _policy),
        tags=fields.get("tags", texts),
    )


def _policy(value: Any) -> InstancePolicy:
    values = an_object(value)  # read in hail's order, since the first complaint ends it
    return InstancePolicy(
        minmax=value_in(values, "minmax", list_of(_bounds)),
        std=value_in(values, "std", _spec),
        disk_templates=value_in(values, "disk-templates", list_of(template)),
        vcpu_ratio=value_in(values, "vcpu-ratio", real),
        spindle_ratio=value_in(values, "spindle-ratio", real),
    )


def _bounds(value: Any) -> Bounds:
    values = an_object(value)
    return Bounds(min=value_in(values, "min", _spec), max=value_in(values, "max", _spec))


def _spec(value: Any) -> Spec:
    values = an_object(value)
    return Spec(*(value_in(values, name.replace("_", "-"), whole) for name in fields_of(Spec)))
