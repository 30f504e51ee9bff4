"""Nodes and instances of a message read column by column, if there is nothing to complain of.

What is the least unusual (a key missing, a fraction, a repeated key) is left to ``cluster``,
which reads one value after the other and finds the words. So nothing here has to be told apart.
"""

from __future__ import annotations

from itertools import chain

from coordinator.allocator.columns import InstanceColumns, NodeColumns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    Object = dict[str, Any]

_STATUS = {"up": "running", "down": "ADMIN_down", "offline": "ADMIN_offline"}
_TEMPLATES = frozenset(
    ("diskless", "file", "sharedfile", "plain", "blockdev", "drbd", "rbd", "ext", "gluster")
)
_NIC_MODES = frozenset((None, "bridged", "routed", "openvswitch"))
_NOWHERE = -1
_LARGEST = 1 << 62  # hail's integers wrap at twice that


class Unusual(Exception):
    """Not to be read in bulk."""


def read_nodes(
    message: Object, groups: Mapping[str, int], *, own_memory: int | None
) -> NodeColumns:
    """Read the nodes.

    Args:
        message: the whole message.
        groups: index by UUID.
        own_memory: MiB that each live node keeps for itself, if not what it reports.

    Raises:
        Unusual: something has to be looked at more closely.
    """
    found = _object(message["nodes"])
    rows = [_node(_object(node), groups) for node in found.values()]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(16)]
    (group, is_live, offline, drained, capable, exclusive, tags, total_memory, own, free_memory,
     total_disk, free_disk, total_cpus, own_cpus, spindles, free_spindles) = columns  # fmt: skip
    _only((int,), chain(own, free_memory, free_disk, own_cpus, spindles, free_spindles))
    _numbers(chain(total_memory, total_disk, total_cpus))
    if own_memory is not None:
        own = [own_memory if live else 0 for live in is_live]
    return NodeColumns(
        names=list(found),
        group=group,
        total_memory=[float(total) for total in total_memory],
        own_memory=own,
        free_memory=free_memory,
        total_disk=[float(total) for total in total_disk],
        free_disk=free_disk,
        total_cpus=[float(total) for total in total_cpus],
        own_cpus=own_cpus,
        speed=[1.0] * len(found),
        offline=offline,
        drained=drained,
        vm_capable=capable,
        spindles=spindles,
        free_spindles=free_spindles,
        exclusive=exclusive,
        tags=tags,
    )


def _node(node: Object, groups: Mapping[str, int]) -> tuple[Any, ...]:
    parameters, tags = _object(node["ndparams"]), node.get("tags")
    tags = () if tags is None else tuple(tags) if type(tags) is list else _unusual()
    offline, drained = node["offline"], node["drained"]
    capable, exclusive = node.get("vm_capable"), parameters["exclusive_storage"]
    capable = True if capable is None else capable
    _only((bool,), (offline, drained, capable, exclusive))
    _only((str,), tags)
    group = groups[node["group"]]
    states = offline, drained, capable, exclusive
    if offline or not capable:
        spindles = 0 if exclusive else parameters["spindle_count"]
        return group, False, *states, tags, 0, 0, 0, 0, 0, 0, 0, spindles, 0
    spindles = node["total_spindles"] if exclusive else parameters["spindle_count"]
    return (
        group,
        True,
        *states,
        tags,
        node["total_memory"],
        node["reserved_memory"],
        node["free_memory"],
        node["total_disk"],
        node["free_disk"],
        node["total_cpus"],
        node["reserved_cpus"],
        spindles,
        node["free_spindles"],
    )


def read_instances(found: Object, nodes: Mapping[str, int] | None) -> InstanceColumns:
    """Read instances.

    Args:
        found: by name.
        nodes: index by name; None for instances that are nowhere yet.

    Raises:
        Unusual: something has to be looked at more closely.
    """
    rows = list(_object(found).values())
    _only((dict,), rows)
    memory, vcpus, disk, use = (
        [one[key] for one in rows] for key in ("memory", "vcpus", "disk_space_total", "spindle_use")
    )
    _only((int,), chain(memory, vcpus, disk, use))
    template = [one["disk_template"] for one in rows]
    if not _TEMPLATES.issuperset(template):
        _unusual()
    tags, disks, nics = ([one[key] for one in rows] for key in ("tags", "disks", "nics"))
    _only((list,), chain(tags, disks, nics))
    _only((str,), chain.from_iterable(tags))
    _only((dict,), chain(chain.from_iterable(disks), chain.from_iterable(nics)))
    sizes = [[disk["size"] for disk in some] for some in disks]
    _only((int,), chain.from_iterable(sizes))
    spindles = [[disk.get("spindles") for disk in some] for some in disks]
    _only((int, type(None)), chain.from_iterable(spindles))
    states = [one.get("admin_state") for one in rows]
    primary, secondary = [_NOWHERE] * len(rows), [_NOWHERE] * len(rows)
    if nodes is not None:
        homes = [one["nodes"] for one in rows]
        _only((list,), homes)
        primary = [nodes[some[0]] for some in homes]
        secondary = [nodes[some[1]] if len(some) > 1 else _NOWHERE for some in homes]
        _only((str,), chain.from_iterable(homes))
    return InstanceColumns(
        names=list(found),
        memory=memory,
        disk=disk,
        vcpus=vcpus,
        status=[_STATUS.get(s, "running") if type(s) is str else "running" for s in states],
        primary=primary,
        secondary=secondary,
        template=template,
        auto_balance=[True] * len(rows),
        tags=tags,
        spindle_use=use,
        disk_spindles=[None if None in some else sum(some) for some in spindles],
        forthcoming=[one.get("forthcoming") is True for one in rows],
        disks=sizes,
        load=None,
        networks=_networks(nics),
    )


def _networks(nics: list[list[Object]]) -> list[frozenset[str]]:
    """The networks that the nics of each instance need."""
    every = list(chain.from_iterable(nics))
    if not every:
        return [frozenset()] * len(nics)
    for key in ("mac", "ip", "link", "bridge", "network"):
        _only((str, type(None)), [nic.get(key) for nic in every])
    if not _NIC_MODES.issuperset(nic.get("mode") for nic in every):
        _unusual()
    return [frozenset(name for nic in some if (name := nic.get("network"))) for some in nics]


def _object(value: Any) -> Object:
    if type(value) is not dict:
        _unusual()
    return value  # type: ignore[no-any-return]


def _only(kinds: tuple[type, ...], values: Iterable[Any]) -> None:
    """Insist on values of just these types; of integers, on ones that fit 64 bits."""
    values = list(values)
    if not set(map(type, values)) <= {*kinds}:
        _unusual()
    if kinds == (int,) and values and not -_LARGEST < min(values) <= max(values) < _LARGEST:
        _unusual()


def _numbers(values: Iterable[Any]) -> None:
    values = list(values)
    if any(type(value) is not int and not isinstance(value, float) for value in values):
        _unusual()
    if values and not max(map(abs, values)) < _LARGEST:
        _unusual()


def _unusual() -> Any:
    raise Unusual
