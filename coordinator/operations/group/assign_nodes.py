"""Give nodes to a group."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, NamedTuple

from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest
from common.messages import Order
from common.model.group import Group
from common.model.node import Node
from common.names import GroupId, GroupName, NodeId, NodeName
from coordinator.locks.names import Wanted
from coordinator.operations.addresses import networks_of
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import GroupArgument
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, argument, option
from coordinator.operations.step import Step
from coordinator.operations.steps.changes import change
from coordinator.state.config import Config


class AssignPlan(Order):
    group: GroupName
    before: tuple[Node, ...]
    after: tuple[Node, ...]
    now: float


@operation("OP_GROUP_ASSIGN_NODES")
class AssignNodes(Operation[None, AssignPlan], kw_only=True):
    """Give nodes to a group; what runs on them stays there."""

    group_name: GroupArgument
    nodes: Annotated[tuple[NodeName, ...], argument("names of the nodes", syntax=Syntax.WORDS)]
    force: Annotated[
        bool,
        option(
            "-f",
            "--force",
            help="even if mirrors, or nics and their networks, are torn apart",
            syntax=Syntax.FLAG,
        ),
    ] = False

    def locks(self, config: Config, _: None) -> Wanted:
        nodes = [config.node(name).uuid for name in self.nodes]
        return wanted(nodes_exclusive=nodes, groups=[config.group(self.group_name).uuid])

    async def prepare(self, cluster: Cluster, _: None) -> AssignPlan:
        config = cluster.config
        group = config.group(self.group_name)
        named = {node.uuid: node for node in map(config.node, self.nodes)}
        before = tuple(node for node in named.values() if node.group != group.uuid)
        if not before:
            raise InvalidRequest(f"Nothing to change: name nodes that are not in {group.name} yet.")
        if unplugged := list(_unplugged(config, before, group)):
            told = (
                f"The group {group.name} is not connected to networks that nics are in: "
                f"{', '.join(unplugged)}. They would be plugged in elsewhere."
            )
            if not self.force:
                raise Conflict(
                    f"{told} Connect it with “gnt-network connect”, or use --force.",
                    group=group.name,
                )
            cluster.log(told)
        found = split_instances(config, {node.uuid: group.uuid for node in before})
        if found.newly:
            told = (
                f"Instances would have their nodes in several groups: {', '.join(found.newly)}. "
                "No allocator moves such instances."
            )
            if not self.force:
                raise Conflict(f"{told} Assign their other nodes, too, or use --force.")
            cluster.log(told)
        if found.still:
            names = ", ".join(found.still)
            cluster.log(f"These instances have their nodes in several groups already: {names}.")
        after = tuple(replace(node, group=group.uuid) for node in before)
        return AssignPlan(group=group.name, before=before, after=after, now=cluster.now())

    def recipe(self, cluster: Cluster, plan: AssignPlan) -> Iterator[Step]:  # noqa: ARG002
        names = ", ".join(node.name for node in plan.before)
        yield change(f"give {names} to {plan.group}", plan.before, plan.after, plan.now)


def _unplugged(config: Config, nodes: Iterable[Node], group: Group) -> Iterator[str]:
    """Yield the networks that nodes' instances need and a group has not."""
    homes = {node.uuid for node in nodes}
    for instance in config.sorted_instances():
        if instance.primary_node in homes:
            for uuid in networks_of(config, instance):
                if uuid not in group.networks:
                    yield f"{config.networks[uuid].name} of {instance.name}"


class Split(NamedTuple):
    """Names of instances whose nodes will be in several groups: ``newly``, or now and ``still``."""

    newly: tuple[str, ...]
    still: tuple[str, ...]


def split_instances(config: Config, moved: Mapping[NodeId, GroupId]) -> Split:
    """Find the mirrored instances that are in several groups when nodes are moved to others."""
    newly: list[str] = []
    still: list[str] = []
    for instance in config.sorted_instances():
        nodes = config.nodes_of(instance) if instance.disk_template.traits.is_mirrored else ()
        after = {moved.get(uuid, config.nodes[uuid].group) for uuid in nodes}
        if len(after) > 1:
            before = {config.nodes[uuid].group for uuid in nodes}
            (still if len(before) > 1 else newly).append(instance.name)
    return Split(tuple(newly), tuple(still))
