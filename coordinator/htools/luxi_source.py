"""A running cluster as an inventory, asked over LUXI; ours or a Ganeti's."""

from collections.abc import Mapping, Sequence
from typing import Any

from common.luxi.client import Client
from common.model.group import AllocationPolicy
from common.model.policy import Bounds, InstancePolicy, Spec
from common.names import MiB
from common.paths import Paths
from coordinator.allocator.inventory import (
    DEFAULT_POLICY,
    NOWHERE,
    Group,
    Instance,
    Inventory,
    Node,
)

_GROUP = ("uuid", "name", "alloc_policy", "ipolicy", "tags")
_NODE = (
    "name", "mtotal", "mnode", "mfree", "dtotal", "dfree", "ctotal", "cnos", "offline", "drained",
    "vm_capable", "ndp/spindle_count", "group.uuid", "tags", "ndp/exclusive_storage", "sptotal",
    "spfree", "ndp/cpu_speed", "role",
)  # fmt: skip
_INSTANCE = (
    "name", "disk_usage", "be/memory", "be/vcpus", "status", "pnode", "snodes", "tags", "oper_ram",
    "be/auto_balance", "disk_template", "be/spindle_use", "disk.sizes", "disk.spindles",
    "forthcoming",
)  # fmt: skip
_LIVE = ("mtotal", "mnode", "mfree", "dtotal", "dfree", "ctotal")


def socket_path(given: str) -> str:
    """The socket to use; ``given`` is empty for this node's coordinator."""
    return given or str(Paths().luxi_socket)


def cluster_from_luxi(path: str, *, static_memory: int) -> Inventory:
    """Ask the coordinator for everything.

    Args:
        path: of the socket; empty for this node's coordinator.
        static_memory: what a KVM node keeps for itself, in MiB; 0 believes the node.

    Raises:
        GntError: it does not answer.
    """
    client = Client(socket_path(path))
    try:
        info = client.call("QueryClusterInfo")
        groups = _rows(client, "group", _GROUP)
        nodes = _rows(client, "node", _NODE)
        instances = _rows(client, "instance", _INSTANCE)
    finally:
        client.close()
    is_kvm = "kvm" in (info.get("enabled_hypervisors") or ())[:1]
    own_memory = static_memory if is_kvm and static_memory > 0 else None
    group_index = {group["uuid"]: index for index, group in enumerate(groups)}
    node_index = {node["name"]: index for index, node in enumerate(nodes)}
    return Inventory(
        groups=tuple(_group(group) for group in groups),
        nodes=tuple(_node(node, group_index, own_memory) for node in nodes),
        instances=tuple(_instance(one, node_index) for one in instances),
        tags=tuple(info.get("tags") or ()),
        policy=_policy(info.get("ipolicy") or {}),
    )


def _rows(client: Client, what: str, fields: Sequence[str]) -> list[dict[str, Any]]:
    """Values by field; None where there is none, or the field is not known."""
    answer = client.call("Query", what, list(fields), None)
    return [
        {
            field: entry[1] if entry[0] == 0 else None
            for field, entry in zip(fields, row, strict=True)
        }
        for row in answer["data"]
    ]


def _group(row: Mapping[str, Any]) -> Group:
    return Group(
        name=row["name"],
        uuid=row["uuid"],
        alloc_policy=AllocationPolicy(row["alloc_policy"]),
        tags=tuple(row["tags"] or ()),
        policy=_policy(row["ipolicy"] or {}),
    )


def _node(row: Mapping[str, Any], groups: Mapping[str, int], own_memory: int | None) -> Node:
    group, tags = groups[row["group.uuid"]], tuple(row["tags"] or ())
    is_live = all(row[field] is not None for field in _LIVE) and row["vm_capable"] is not False
    is_master = row["role"] == "M"
    if row["offline"] or not is_live:
        return Node(name=row["name"], group=group, offline=True, spindles=0, tags=tags)
    exclusive = bool(row["ndp/exclusive_storage"])
    spindles = row["sptotal"] if exclusive else row["ndp/spindle_count"]
    return Node(
        name=row["name"],
        group=group,
        total_memory=float(row["mtotal"]),
        own_memory=row["mnode"] if own_memory is None else own_memory,
        free_memory=int(row["mfree"]),
        total_disk=float(row["dtotal"]),
        free_disk=int(row["dfree"]),
        total_cpus=float(row["ctotal"]),
        own_cpus=int(row["cnos"] or 0),
        speed=float(row["ndp/cpu_speed"] or 1.0),
        offline=bool(row["drained"]),
        is_master=is_master,
        spindles=1 if spindles is None else int(spindles),
        free_spindles=int(row["spfree"] or 0),
        exclusive=exclusive,
        tags=tags,
    )


def _instance(row: Mapping[str, Any], nodes: Mapping[str, int]) -> Instance:
    is_running = row["status"] == "running" and row["oper_ram"] is not None
    spindles = row["disk.spindles"]
    known = spindles is not None and None not in spindles
    automatic, vcpus, use = row["be/auto_balance"], row["be/vcpus"], row["be/spindle_use"]
    return Instance(
        name=row["name"],
        memory=int(row["oper_ram"] if is_running else row["be/memory"] or 0),
        disk=int(row["disk_usage"] or 0),
        vcpus=1 if vcpus is None else int(vcpus),
        status=row["status"],
        primary=nodes[row["pnode"]],
        secondary=nodes[row["snodes"][0]] if row["snodes"] else NOWHERE,
        template=row["disk_template"],
        auto_balance=automatic is not False,
        tags=tuple(row["tags"] or ()),
        spindle_use=1 if use is None else int(use),
        disk_spindles=sum(spindles) if known else None,
        forthcoming=bool(row["forthcoming"]),
        disks=tuple(row["disk.sizes"] or ()),
    )


def _policy(told: Mapping[str, Any]) -> InstancePolicy:
    if not told:
        return DEFAULT_POLICY
    std = _spec(told["std"]) if "std" in told else DEFAULT_POLICY.std
    return InstancePolicy(
        minmax=tuple(
            Bounds(min=_spec(pair["min"]), max=_spec(pair["max"])) for pair in told["minmax"]
        ),
        std=std,
        disk_templates=tuple(told["disk-templates"]),
        vcpu_ratio=float(told["vcpu-ratio"]),
        spindle_ratio=float(told["spindle-ratio"]),
    )


def _spec(told: Mapping[str, int]) -> Spec:
    return Spec(
        memory_size=MiB(told["memory-size"]),
        cpu_count=told["cpu-count"],
        disk_size=MiB(told["disk-size"]),
        disk_count=told["disk-count"],
        nic_count=told["nic-count"],
        spindle_use=told["spindle-use"],
    )
