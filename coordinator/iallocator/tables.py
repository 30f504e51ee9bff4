"""Nodes and instances of a message, read column by column.

hail reads object by object, and its first complaint ends it: so where there is one, the objects are
read again one by one.
"""

from __future__ import annotations

from common.errors import InvalidRequest
from coordinator.allocator.columns import InstanceColumns, NodeColumns
from coordinator.iallocator.fields import Fields, flag, real, text, texts, whole
from coordinator.iallocator.table import Table, template

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

    Object = dict[str, Any]
    T = TypeVar("T")

_STATUS = {"up": "running", "down": "ADMIN_down", "offline": "ADMIN_offline"}
_NIC_MODES = frozenset((None, "bridged", "routed", "openvswitch"))
_NOWHERE = -1
_NONE: frozenset[str] = frozenset()


def read_nodes(found: Object, groups: Mapping[str, int]) -> NodeColumns:
    """Read the nodes; ``groups`` is the index by UUID.

    Raises:
        InvalidRequest: something is missing or of the wrong type.
    """
    return _in_order(
        Table.of(found, "invalid data for node '{}'"), lambda table: _nodes(table, groups)
    )


def read_instances(found: Object, nodes: Mapping[str, int]) -> InstanceColumns:
    """Read instances that are there; ``nodes`` is the index by name.

    Raises:
        InvalidRequest: as ``read_nodes``.
    """
    table = Table.of(found, "invalid data for instance '{}'")
    return _in_order(table, lambda some: _instances(some, nodes))


def read_new_instance(name: str, fields: Fields) -> InstanceColumns:
    """Read an instance that is nowhere yet.

    Raises:
        InvalidRequest: as ``read_nodes``.
    """
    return _instances(Table([name], [fields.values], _literally(fields.what)), None)


def _in_order(table: Table, read: Callable[[Table], T]) -> T:
    """Read a table; of complaints, the first object's first one counts."""
    try:
        return read(table)
    except InvalidRequest:
        for one in table.one_by_one():
            read(one)
        raise


def _nodes(table: Table, groups: Mapping[str, int]) -> NodeColumns:
    offline, drained = table.get("offline", flag), table.get("drained", flag)
    uuids = table.get("group", text)
    capable = [value is not False for value in table.find("vm_capable", flag)]
    parameters = table.inside("ndparams")
    tags = [tuple(value or ()) for value in table.find("tags", texts)]
    for name, uuid in zip(table.names, uuids, strict=True):
        if uuid not in groups:
            raise InvalidRequest(f"Unknown group '{uuid}' for node {name}")
    exclusive = parameters.get("exclusive_storage", flag)
    live = [able and not off for able, off in zip(capable, offline, strict=True)]
    shared = [not alone for alone in exclusive]
    own_spindles = [on and alone for on, alone in zip(live, exclusive, strict=True)]
    total_spindles = table.get("total_spindles", whole, own_spindles)
    free_spindles = table.get("free_spindles", whole, live)
    total_memory = table.get("total_memory", real, live)
    own_memory = table.get("reserved_memory", whole, live)
    free_memory = table.get("free_memory", whole, live)
    total_disk = table.get("total_disk", real, live)
    free_disk = table.get("free_disk", whole, live)
    total_cpus = table.get("total_cpus", real, live)
    own_cpus = table.get("reserved_cpus", whole, live)
    counted = parameters.get("spindle_count", whole, shared)
    return NodeColumns(
        names=table.names,
        group=[groups[uuid] for uuid in uuids],
        total_memory=total_memory,
        own_memory=own_memory,
        free_memory=free_memory,
        total_disk=total_disk,
        free_disk=free_disk,
        total_cpus=total_cpus,
        own_cpus=own_cpus,
        speed=[1.0] * len(live),
        offline=offline,
        drained=drained,
        vm_capable=capable,
        spindles=[own + some for own, some in zip(total_spindles, counted, strict=True)],
        free_spindles=free_spindles,
        exclusive=exclusive,
        tags=tags,
    )


def _instances(table: Table, nodes: Mapping[str, int] | None) -> InstanceColumns:
    disk = table.get("disk_space_total", whole)
    disks = table.inner("disks")
    sizes = disks.by_owner(disks.get("size", whole))
    spindles = disks.by_owner(disks.find("spindles", whole))
    memory, vcpus = table.get("memory", whole), table.get("vcpus", whole)
    tags, kinds = table.get("tags", texts), table.get("disk_template", template)
    use = table.get("spindle_use", whole)
    nics = table.inner("nics")
    networks = nics.by_owner(_in_order(nics, _networks))
    primary, secondary = [_NOWHERE] * len(memory), [_NOWHERE] * len(memory)
    if nodes is not None:
        homes = table.get("nodes", texts)
        try:
            primary = [nodes[some[0]] for some in homes]
            secondary = [nodes[some[1]] if len(some) > 1 else _NOWHERE for some in homes]
        except LookupError:
            raise _homeless(table.names, homes, nodes) from None
    # What cannot be read is as good as absent in these two; hail does not complain.
    states = [row.get("admin_state") for row in table.rows]
    forthcoming = [row.get("forthcoming") is True for row in table.rows]
    return InstanceColumns(
        names=table.names,
        memory=memory,
        disk=disk,
        vcpus=vcpus,
        status=[_STATUS.get(s, "running") if isinstance(s, str) else "running" for s in states],
        primary=primary,
        secondary=secondary,
        template=kinds,
        auto_balance=[True] * len(memory),
        tags=tags,
        spindle_use=use,
        disk_spindles=[None if None in some else sum(some) for some in spindles],
        forthcoming=forthcoming,
        disks=sizes,
        load=None,
        networks=[frozenset(filter(None, some)) if any(some) else _NONE for some in networks],
    )


def _homeless(
    instances: Sequence[str], homes: Sequence[Sequence[str]], nodes: Mapping[str, int]
) -> InvalidRequest:
    for instance, names in zip(instances, homes, strict=True):
        if not names:
            return InvalidRequest(f"empty node list for instance {instance}")
        for node in names[:2]:
            if node not in nodes:
                return InvalidRequest(f"Unknown node '{node}' for instance {instance}")
    raise AssertionError("every instance is somewhere")


def _literally(text: str) -> str:
    """What ``format`` leaves as it is."""
    return text.replace("{", "{{").replace("}", "}}")


def _networks(nics: Table) -> list[str | None]:
    for key in ("mac", "ip"):
        nics.find(key, text)
    modes = nics.find("mode", text)
    if not _NIC_MODES.issuperset(modes):
        name = next(n for n, mode in zip(nics.names, modes, strict=True) if mode not in _NIC_MODES)
        raise InvalidRequest(f"invalid NIC mode in instance {name}")
    for key in ("link", "bridge"):
        nics.find(key, text)
    return nics.find("network", text)
