"""A running cluster as a snapshot, asked over LUXI; ours or a Ganeti's."""

from collections.abc import Mapping, Sequence
from typing import Any

from common.luxi.client import Client
from common.model.allocation_policy import AllocationPolicy
from common.paths import Paths
from common.record import fields_of, replace
from coordinator.allocator.policy import Bounds, InstancePolicy, Spec
from coordinator.allocator.snapshot import (
    NOWHERE,
    Group,
    Instance,
    Node,
    Snapshot,
)

_GROUP = ("uuid", "name", "alloc_policy", "ipolicy", "tags")
_NODE = (
    "name", "mtotal", "mnode", "mfree", "dtotal", "dfree", "ctotal", "cnos", "offline", "drained",
    "vm_capable", "ndp/spindle_count", "group.uuid", "tags", "ndp/exclusive_storage", "sptotal",
    "spfree", "ndp/cpu_speed",
)  # fmt: skip
_INSTANCE = (
    "name", "disk_usage", "be/memory", "be/vcpus", "status", "pnode", "snodes", "tags",
    "be/auto_balance", "disk_template", "be/spindle_use", "disk.sizes", "disk.spindles",
    "forthcoming",
)  # fmt: skip
_LIVE = ("mtotal", "mnode", "mfree", "ctotal")  # a node without disks of its own has no others


def socket_path(given: str) -> str:
    """The socket to use; ``given`` is empty for this node's coordinator."""
    return given or str(Paths().luxi_socket)


def with_own_memory(cluster: Snapshot, memory: int) -> Snapshot:
    """The cluster with so many MiB kept for each node itself; 0 believes what they report."""
    if memory <= 0:
        return cluster
    nodes = tuple(replace(node, own_memory=memory) for node in cluster.nodes)
    return replace(cluster, nodes=nodes)


def reported_by_luxi(path: str) -> tuple[Snapshot, bool]:
    """The cluster as its nodes report it, and whether their hypervisor is KVM.

    ``path`` is that of the socket; empty for this node's coordinator.

    Raises:
        GntError: the coordinator does not answer.
    """
    client = Client(socket_path(path))
    try:
        info = client.call("QueryClusterInfo")
        groups = _rows(client, "group", _GROUP)
        nodes = _rows(client, "node", _NODE)
        instances = _rows(client, "instance", _INSTANCE)
    finally:
        client.close()
    return snapshot_from_rows(info, groups, nodes, instances)


def snapshot_from_rows(
    info: Mapping[str, Any],
    groups: Sequence[Mapping[str, Any]],
    nodes: Sequence[Mapping[str, Any]],
    instances: Sequence[Mapping[str, Any]],
) -> tuple[Snapshot, bool]:
    """The cluster, and whether its nodes' hypervisor is KVM.

    ``info`` tells of the cluster itself. The rows of others have values by the names of LUXI's
    fields; None where there is none.

    Raises:
        KeyError: a row lacks what it must have, or names a node or group that is not there.
    """
    groups_by_id = {group["uuid"]: index for index, group in enumerate(groups)}
    nodes_by_name = {node["name"]: index for index, node in enumerate(nodes)}
    some_nodes = [dict.fromkeys(_NODE) | dict(row) for row in nodes]
    some_instances = [dict.fromkeys(_INSTANCE) | dict(row) for row in instances]
    cluster = Snapshot(
        groups=tuple(_group(dict.fromkeys(_GROUP) | dict(row)) for row in groups),
        nodes=tuple(_node(row, groups_by_id, info.get("master")) for row in some_nodes),
        instances=tuple(_instance(row, nodes_by_name) for row in some_instances),
        tags=tuple(info.get("tags") or ()),
        policy=_policy(info.get("ipolicy") or {}),
    )
    return cluster, "kvm" in (info.get("enabled_hypervisors") or ())[:1]


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


def _node(row: Mapping[str, Any], groups: Mapping[str, int], master: str | None) -> Node:
    is_live = (
        not row["offline"]
        and all(row[field] is not None for field in _LIVE)
        and row["vm_capable"] is not False
    )
    exclusive = bool(row["ndp/exclusive_storage"])
    known = row["sptotal"] if exclusive and is_live else row["ndp/spindle_count"]
    spindles = 0 if exclusive and not is_live else 1 if known is None else int(known)
    node = Node(
        name=row["name"],
        group=groups[row["group.uuid"]],
        speed=float(row["ndp/cpu_speed"] or 1.0),
        offline=not is_live,
        drained=bool(row["drained"]),
        is_master=row["name"] == master,
        spindles=spindles,
        exclusive=exclusive,
        tags=tuple(row["tags"] or ()),
    )
    if not is_live:
        return node
    return replace(
        node,
        total_memory=float(row["mtotal"]),
        own_memory=int(row["mnode"]),
        free_memory=int(row["mfree"]),
        total_disk=float(row["dtotal"] or 0),
        free_disk=int(row["dfree"] or 0),
        total_cpus=float(row["ctotal"]),
        own_cpus=int(row["cnos"] or 0),
        free_spindles=int(row["spfree"] or 0),
    )


def _instance(row: Mapping[str, Any], nodes: Mapping[str, int]) -> Instance:
    spindles = row["disk.spindles"]
    known = spindles is not None and None not in spindles
    automatic, vcpus, use = row["be/auto_balance"], row["be/vcpus"], row["be/spindle_use"]
    return Instance(
        name=row["name"],
        memory=int(row["be/memory"] or 0),
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


def _policy(given: Mapping[str, Any]) -> InstancePolicy:
    if not given:
        return InstancePolicy()
    return InstancePolicy(
        minmax=tuple(Bounds(_spec(pair["min"]), _spec(pair["max"])) for pair in given["minmax"]),
        std=_spec(given["std"]) if "std" in given else InstancePolicy().std,
        disk_templates=tuple(given["disk-templates"]),
        vcpu_ratio=float(given["vcpu-ratio"]),
        spindle_ratio=float(given["spindle-ratio"]),
    )


def _spec(given: Mapping[str, int]) -> Spec:
    return Spec(*(given[name.replace("_", "-")] for name in fields_of(Spec)))
