"""Whom an operation concerns, and what its scripts are told, from its parameters and its plan."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from common.messages import Order
from common.model.entity import Entity
from common.model.instance import Instance
from common.model.network import Network
from common.model.node import Node, NodeRef
from common.names import NodeId
from coordinator.hooks.table import HOOKS, NO_HOOK, About, Hook, Where
from coordinator.hooks.variables import of_cluster, of_group, of_instance, of_network, of_node
from coordinator.operations.base import Operation
from coordinator.state.config import Config
from coordinator.state.kinds import NETWORK

T = TypeVar("T")

OBJECTS = {
    About.INSTANCE: "instance_name",
    About.NODE: "node_name",
    About.GROUP: "group_name",
    About.NETWORK: "network_name",
}
"""The field of an operation that names what it is about."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One operation as its hooks see it."""

    operation: Operation[Any, Any]
    plan: Any
    config: Config

    @property
    def hook(self) -> Hook:
        return HOOKS.get(self.operation.opcode, NO_HOOK)

    def nodes(self, where: Where) -> tuple[NodeRef, ...]:
        """Return the nodes on which scripts are run; the master is the first of them."""
        if where is Where.NOWHERE:
            return ()
        nodes = self.config.nodes
        chosen = (nodes[uuid].ref for uuid in self._chosen(where) if uuid in nodes)
        return tuple(dict.fromkeys((self.config.master().ref, *chosen)))

    def _chosen(self, where: Where) -> Iterator[NodeId]:
        config, about = self.config, self._object()
        match where:
            case Where.CONCERNED if self._is_only_reserved():
                return  # no node has anything of it, and one of them may be dead
            case Where.CONCERNED:
                if isinstance(about, Instance) and about.uuid in config.instances:
                    yield from config.nodes_of(about)
                yield from (ref.uuid for ref in _nodes_in(self.plan))
            case Where.NODE if isinstance(about, Node):
                # One that is being marked offline is dead, and would be waited for in vain.
                if getattr(self.operation, "offline", None) is not True:
                    yield about.uuid
            case Where.GROUP:
                group = config.find_group(self._name(About.GROUP))
                yield from (
                    n.uuid for n in config.sorted_nodes() if group and n.group == group.uuid
                )
            case Where.EVERY:
                yield from (node.uuid for node in config.sorted_nodes())
            case Where.OTHERS:
                yield from (n.uuid for n in config.sorted_nodes() if n != about)
            case _:  # the master, who is among them anyway
                return

    def _is_only_reserved(self) -> bool:
        about, after = self._object(), self._planned("instance", Instance)
        return isinstance(about, Instance) and about.forthcoming and (after or about).forthcoming

    def objects(self, subject: str = "") -> tuple[str, Mapping[str, object]]:
        """Return the UUID of what this is about, and what scripts are told about that.

        Args:
            subject: its UUID, where that is known: it may have another name by now.
        """
        if self.hook.about is About.CLUSTER:
            return "", of_cluster(self.config)
        about = self._object(subject)
        match about:
            case Instance():
                kept = about.uuid in self.config.instances
                disks = self.config.disks_of(about) if kept else self._planned("disks", tuple) or ()
                nics = self.config.nics_of(about) if kept else self._planned("nics", tuple) or ()
                return about.uuid, of_instance(self.config, about, disks, nics)
            case Node():
                return about.uuid, of_node(about)
            case Network():
                return about.uuid, of_network(about)
            case None:
                return "", {}
            case _:
                return about.uuid, of_group(about)

    def parameters(self) -> Mapping[str, object]:
        """Return what scripts are told about the operation itself."""
        told = {name: getattr(self.operation, f, None) for name, f in self.hook.told.items()}
        return {**told, **self._ends()} if self.hook.moves else told

    def _ends(self) -> Mapping[str, object]:
        instance, target = self._object(), self._planned("target", NodeRef)
        if not isinstance(instance, Instance):
            return {}
        old = self.config.nodes[instance.primary_node].name
        seconds = [self.config.nodes[n].name for n in self.config.secondary_nodes(instance)]
        new = target.name if target else old
        return {
            "OLD_PRIMARY": old,
            "OLD_SECONDARY": " ".join(seconds),
            "NEW_PRIMARY": new,
            "NEW_SECONDARY": old if seconds else "",
        }

    def _name(self, about: About) -> str:
        return str(getattr(self.operation, OBJECTS[about], ""))

    def _object(self, subject: str = "") -> Any:
        """Return what this is about: as it is, or of one that is not there yet, as it will be."""
        about, config = self.hook.about, self.config
        if about not in OBJECTS:
            return None
        finds: Mapping[About, Callable[[str], Any]] = {
            About.INSTANCE: config.find_instance,
            About.NODE: config.find_node,
            About.GROUP: config.find_group,
            About.NETWORK: partial(config.find, NETWORK),
        }
        found = finds[about](subject or self._name(about))
        return found or self._planned(about.value.lower(), Entity)

    def _planned(self, field: str, kind: type[T]) -> T | None:
        """Return what the plan, or one within it, has in a field."""
        values = (getattr(plan, field, None) for plan in _plans(self.plan))
        return next((value for value in values if isinstance(value, kind)), None)


def _plans(plan: Any) -> Iterator[Order]:
    """Yield a plan, and those that it is made of: a failover's is in that of a migration."""
    if isinstance(plan, Order) and not isinstance(plan, Entity | NodeRef):
        yield plan
        for field in plan.__struct_fields__:
            yield from _plans(getattr(plan, field))


def _nodes_in(plan: Any) -> Iterator[NodeRef]:
    """Find the nodes that a plan names, or one within it."""
    for part in _plans(plan):
        for field in part.__struct_fields__:
            value = getattr(part, field)
            for each in value if isinstance(value, tuple) else (value,):
                if isinstance(each, NodeRef):
                    yield each
