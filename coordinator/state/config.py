"""The configuration: what there is in the cluster, and how to find it."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self, TypeVar

from immutables import Map

from common.errors import Conflict, NotFound
from common.model.cluster import Cluster
from common.model.disk import Disk
from common.model.group import Group
from common.model.instance import Instance, nodes_of
from common.model.nic import Nic
from common.model.node import Node
from common.names import DiskId, GroupId, InstanceId, KeyId, NicId, NodeId, NodeName
from common.natural import Key, natural_key
from coordinator.state.rows import Delete, Update

MOST_COMPARED = 2000  # names; comparing more with a wrong one would take too long
MOST_NAMED = 5

Entity = Group | Node | Instance | Disk | Nic
Named = TypeVar("Named", Group, Node, Instance)

_FIELDS: dict[type, str] = {
    Group: "groups", Node: "nodes", Instance: "instances", Disk: "disks", Nic: "nics",
}  # fmt: skip


@dataclass(frozen=True)
class Config:
    """One immutable configuration; ``apply`` makes the next, sharing what stays the same.

    Maps are by UUID. A ``ref`` is a name or a UUID; where a thing has to be there, the first parts
    of its name will do if they are of no other: ``web1`` for ``web1.example.com``.
    """

    groups: Map[GroupId, Group] = field(default_factory=Map)
    nodes: Map[NodeId, Node] = field(default_factory=Map)
    instances: Map[InstanceId, Instance] = field(default_factory=Map)
    disks: Map[DiskId, Disk] = field(default_factory=Map)
    nics: Map[NicId, Nic] = field(default_factory=Map)
    _cluster: Cluster | None = None
    _names: Map[tuple[type, str], str] = field(default_factory=Map, repr=False)  # to UUID
    _primaries: Map[NodeId, frozenset[InstanceId]] = field(
        default_factory=Map, repr=False
    )  # instances

    @property
    def cluster(self) -> Cluster:
        """The cluster itself.

        Raises:
            NotFound: nothing was ever committed.
        """
        if self._cluster is None:
            raise NotFound("There is no cluster yet; make one with “gnt-cluster init”.")
        return self._cluster

    @property
    def is_empty(self) -> bool:
        return self._cluster is None

    def find_group(self, ref: str) -> Group | None:
        return self._find(self.groups, Group, ref)

    def find_node(self, ref: str) -> Node | None:
        return self._find(self.nodes, Node, ref)

    def find_instance(self, ref: str) -> Instance | None:
        return self._find(self.instances, Instance, ref)

    def group(self, ref: str) -> Group:
        return self.find_group(ref) or _guess(self.groups, "group", ref)

    def node(self, ref: str) -> Node:
        return self.find_node(ref) or _guess(self.nodes, "node", ref)

    def instance(self, ref: str) -> Instance:
        return self.find_instance(ref) or _guess(self.instances, "instance", ref)

    def instances_on(self, node: NodeId) -> tuple[Instance, ...]:
        """Return the instances whose primary node has this UUID, by name."""
        uuids = self._primaries.get(node, frozenset())
        return tuple(sorted((self.instances[uuid] for uuid in uuids), key=_name))

    def instances_with_secondary(self, node: NodeId) -> tuple[Instance, ...]:
        """Return the instances that have a secondary node of this UUID, by name."""
        return self._secondaries.get(node, ())

    def nodes_of(self, instance: Instance) -> tuple[NodeId, ...]:
        """Return the primary node of an instance, then its secondary nodes."""
        return nodes_of(instance, self.disks_of(instance))

    def secondary_nodes(self, instance: Instance) -> tuple[NodeId, ...]:
        return self.nodes_of(instance)[1:]

    def disks_of(self, instance: Instance) -> tuple[Disk, ...]:
        return tuple(self.disks[uuid] for uuid in instance.disks)

    def nics_of(self, instance: Instance) -> tuple[Nic, ...]:
        return tuple(self.nics[uuid] for uuid in instance.nics)

    def candidates(self) -> tuple[Node, ...]:
        """Return the master candidates, the master among them, by name."""
        return self._candidates

    @cached_property
    def candidate_names(self) -> frozenset[NodeName]:
        return frozenset(node.name for node in self._candidates)

    def obeyed(self) -> dict[NodeName, KeyId]:
        """Return whose orders nodes are to take, with their keys: candidates, and those to be."""
        nodes = self._sorted_nodes
        return {node.name: node.key for node in nodes if node.master_candidate or node.announced}

    def master(self) -> Node:
        return self.node(self.cluster.master)

    def sorted_groups(self) -> tuple[Group, ...]:
        return self._sorted_groups

    def sorted_nodes(self) -> tuple[Node, ...]:
        return self._sorted_nodes

    def sorted_instances(self) -> tuple[Instance, ...]:
        return self._sorted_instances

    def apply(self, updates: Iterable[Update]) -> Self:
        """Return the configuration after ``updates``, in their order.

        Raises:
            Conflict: a name would be given twice.
        """
        cluster = self._cluster
        maps: dict[str, Any] = {name: getattr(self, name).mutate() for name in _FIELDS.values()}
        names, primaries = self._names.mutate(), self._primaries.mutate()
        for update in updates:
            item, gone = update.item, isinstance(update, Delete)
            if isinstance(item, Cluster):
                cluster = None if gone else item
                continue
            if not isinstance(item, Entity):
                raise TypeError(f"{type(item).__name__} is no part of the configuration")
            table = maps[_FIELDS[type(item)]]
            old = table.pop(item.uuid, None)
            if old is not None:
                _forget(old, names, primaries)
            if not gone:
                _enter(item, names, primaries)
                table[item.uuid] = item
        finished = {name: table.finish() for name, table in maps.items()}
        return replace(
            self, _cluster=cluster, _names=names.finish(), _primaries=primaries.finish(),
            **finished,
        )  # fmt: skip

    def _find(self, table: Map[Any, Named], kind: type[Named], ref: str) -> Named | None:
        uuid = self._names.get((kind, ref), ref)
        return table.get(uuid)

    @cached_property
    def _secondaries(self) -> dict[NodeId, tuple[Instance, ...]]:
        found: dict[NodeId, tuple[Instance, ...]] = {}
        for instance in self._sorted_instances:
            if instance.disk_template.traits.is_mirrored:
                for node in self.secondary_nodes(instance):
                    found[node] = (*found.get(node, ()), instance)
        return found

    @cached_property
    def _candidates(self) -> tuple[Node, ...]:
        return tuple(node for node in self._sorted_nodes if node.master_candidate)

    @cached_property
    def _sorted_groups(self) -> tuple[Group, ...]:
        return tuple(sorted(self.groups.values(), key=_name))

    @cached_property
    def _sorted_nodes(self) -> tuple[Node, ...]:
        return tuple(sorted(self.nodes.values(), key=_name))

    @cached_property
    def _sorted_instances(self) -> tuple[Instance, ...]:
        return tuple(sorted(self.instances.values(), key=_name))


def _enter(item: Entity, names: Any, primaries: Any) -> None:
    if isinstance(item, Group | Node | Instance):
        key = (type(item), item.name)
        if key in names:
            kind = type(item).__name__.lower()
            raise Conflict(f"There is already {_a(kind)} named {item.name}.", name=item.name)
        names[key] = item.uuid
    if isinstance(item, Instance):
        there = primaries.get(item.primary_node, frozenset())
        primaries[item.primary_node] = there | {item.uuid}


def _forget(item: Entity, names: Any, primaries: Any) -> None:
    if isinstance(item, Group | Node | Instance):
        del names[type(item), item.name]
    if isinstance(item, Instance):
        left = primaries[item.primary_node] - {item.uuid}
        if left:
            primaries[item.primary_node] = left
        else:
            del primaries[item.primary_node]


def _guess(table: Map[Any, Named], kind: str, ref: str) -> Named:
    """Return the only thing whose name begins with ``ref`` and a dot.

    Raises:
        NotFound: there is none, or there are several; names them, or what comes near.
    """
    found = [item for item in table.values() if ref and item.name.startswith(f"{ref}.")]
    if len(found) == 1:
        return found[0]
    names = sorted((item.name for item in found), key=natural_key)
    if names:
        told = f"“{ref}” may be {', '.join(names[:MOST_NAMED])}: say more of the name."
        raise NotFound(told, **{kind: ref})
    from difflib import get_close_matches  # commands import this file, and seldom get here

    near = (
        ()
        if len(table) > MOST_COMPARED
        else get_close_matches(ref, [item.name for item in table.values()], n=1)
    )
    hint = f" Did you mean {near[0]}?" if near else ""
    raise NotFound(f"There is no {kind} “{ref}” in this cluster.{hint}", **{kind: ref})


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _name(item: Group | Node | Instance) -> Key:
    return natural_key(item.name)
