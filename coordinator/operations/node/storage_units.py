"""Storage units: what nodes keep disks in, and what that is made of, in Ganeti's words."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from common.errors import GntError, InvalidRequest
from common.model.node import Node
from common.model.pool import Pool
from common.model.pool_kind import PoolKind
from common.noderpc.facts import NodeFacts
from common.noderpc.physical_volumes import PhysicalVolumes
from coordinator.disks.directory import FILE, GLUSTER, SHARED_FILE
from coordinator.operations.cluster_view import Cluster

Row = dict[str, Any]

FIELDS = ("node", "type", "name", "size", "used", "free", "allocatable")


class UnitType(StrEnum):
    """Ganeti's names."""

    FILE = "file"
    SHARED_FILE = "sharedfile"
    GLUSTER = "gluster"
    PHYSICAL_VOLUME = "lvm-pv"
    VOLUME_GROUP = "lvm-vg"


_DIRECTORIES = {
    UnitType.FILE: FILE,
    UnitType.SHARED_FILE: SHARED_FILE,
    UnitType.GLUSTER: GLUSTER,
}


def type_for(cluster: Cluster) -> UnitType:
    """Return the type of unit that new disks are kept in.

    Raises:
        InvalidRequest: they are kept in none that nodes tell of.
    """
    record = cluster.config.cluster
    template = record.enabled_disk_templates[0]
    for unit, kind in _DIRECTORIES.items():
        if kind.template == template:
            return unit
    from coordinator.disks.kinds import enabled_kinds  # the table knows all kinds

    if any(kind.traits.is_in_volume_group for kind in enabled_kinds(record)[:1]):
        return UnitType.VOLUME_GROUP
    raise InvalidRequest(
        f"Nodes do not tell of what {template} disks are kept in; say what to list with "
        f"--storage-type: {', '.join(UnitType)}."
    )


async def look_at_units(
    cluster: Cluster, nodes: list[Node], unit: UnitType
) -> Mapping[str, list[Row] | GntError]:
    """Return the units of each node, by its name."""
    if unit in _DIRECTORIES:
        pool = _DIRECTORIES[unit].pool(cluster.config.cluster)
        return await _directories(cluster, nodes, pool) if pool else {}
    ask = _devices if unit is UnitType.PHYSICAL_VOLUME else _groups
    return await cluster.each({node.name: ask(cluster, node) for node in nodes})


async def _directories(
    cluster: Cluster, nodes: list[Node], pool: Pool
) -> Mapping[str, list[Row] | GntError]:
    assert pool.kind is PoolKind.DIRECTORY
    facts = await cluster.facts_of(nodes)
    return {node.name: _directory(facts[node.uuid], pool) for node in nodes if node.uuid in facts}


def _directory(told: NodeFacts | GntError, pool: Pool) -> list[Row] | GntError:
    if isinstance(told, GntError):
        return told
    return [
        _row(pool.name, size=space.total, free=space.free, allocatable=space.usable)
        for space in told.storage
        if space.pool == pool
    ]


async def _devices(cluster: Cluster, node: Node) -> list[Row]:
    return [
        _row(each.name, size=each.size, free=each.free, allocatable=each.allocatable)
        for each in await cluster.call(PhysicalVolumes, node).devices()
        if not each.missing
    ]


async def _groups(cluster: Cluster, node: Node) -> list[Row]:
    return [
        _row(each.name, size=each.size, free=each.free, allocatable=True)
        for each in await cluster.call(PhysicalVolumes, node).groups()
    ]


def _row(name: str, *, size: int, free: int, allocatable: bool) -> Row:
    return {
        "name": name, "size": size, "used": size - free, "free": free, "allocatable": allocatable,
    }  # fmt: skip
