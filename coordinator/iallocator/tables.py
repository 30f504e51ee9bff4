"""Nodes and instances of a message, read column by column.

hail reads object by object, and its first complaint ends it: so where there is one, the objects are
read again one by one.
"""

from __future__ import annotations

from common.errors import InvalidRequest
from coordinator.allocator.snapshot import NOWHERE, STATUS_OF, InstanceColumns, NodeColumns
from coordinator.iallocator.fields import Fields, flag, real, text, texts, whole
from coordinator.iallocator.table import Table, template

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

    Object = dict[str, Any]
    T = TypeVar("T")

_NIC_MODES = frozenset((None, "bridged", "routed", "openvswitch"))
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


_FIGURES = (
    ("free_spindles", "free_spindles", whole),
    ("total_memory", "total_memory", real),
    ("own_memory", "reserved_memory", whole),
    ("free_memory", "free_memory", whole),
    ("total_disk", "total_disk", real),
    ("free_disk", "free_disk", whole),
    ("total_cpus", "total_cpus", real),
    ("own_cpus", "reserved_cpus", whole),
)
"""What a node tells if it is live: the column, the key, and how it is read; in hail's order."""


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
    reported = table.get("total_spindles", whole, own_spindles)
    figures = {column: table.get(key, read, live) for column, key, read in _FIGURES}
    counted = parameters.get("spindle_count", whole, shared)
    return NodeColumns(
        names=table.names,
        group=[groups[uuid] for uuid in uuids],
        speed=[1.0] * len(live),
        offline=offline,
        drained=drained,
        vm_capable=capable,
        spindles=[own + some for own, some in zip(reported, counted, strict=True)],
        exclusive=exclusive,
        tags=tags,
        **figures,
    )


def _instances(table: Table, nodes: Mapping[str, int] | None) -> InstanceColumns:
    """Read instances; the order in which columns are read is hail's."""
    disk, disks = table.get("disk_space_total", whole), table.inner("disks")
    sizes = disks.by_owner(disks.get("size", whole))
    spindles = disks.by_owner(disks.find("spindles", whole))
    amounts = {name: table.get(name, whole) for name in ("memory", "vcpus")}
    tags, kinds = table.get("tags", texts), table.get("disk_template", template)
    use, nics = table.get("spindle_use", whole), table.inner("nics")
    networks = nics.by_owner(_in_order(nics, _networks))
    primary, secondary = _homes(table, nodes)
    # What cannot be read is as good as absent in these two; hail does not complain.
    states = [row.get("admin_state") for row in table.rows]
    forthcoming = [row.get("forthcoming") is True for row in table.rows]
    return InstanceColumns(
        names=table.names,
        disk=disk,
        status=[STATUS_OF.get(s, "running") if isinstance(s, str) else "running" for s in states],
        primary=primary,
        secondary=secondary,
        template=kinds,
        auto_balance=[True] * len(disk),
        tags=tags,
        spindle_use=use,
        disk_spindles=[None if None in some else sum(some) for some in spindles],
        forthcoming=forthcoming,
        disks=sizes,
        load=None,
        networks=[frozenset(filter(None, some)) if any(some) else _NONE for some in networks],
        **amounts,
    )


def _homes(table: Table, nodes: Mapping[str, int] | None) -> tuple[list[int], list[int]]:
    """Primary and secondary nodes; new instances, for which ``nodes`` is None, are nowhere."""
    nowhere = [NOWHERE] * len(table.rows)
    if nodes is None:
        return nowhere, nowhere
    homes = table.get("nodes", texts)
    try:
        primary = [nodes[some[0]] for some in homes]
        return primary, [nodes[some[1]] if len(some) > 1 else NOWHERE for some in homes]
    except LookupError:
        raise _homeless(table.names, homes, nodes) from None


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
