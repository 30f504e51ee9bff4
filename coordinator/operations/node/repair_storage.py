"""Put a volume group right that misses a physical volume."""

from collections.abc import Iterator
from typing import Annotated

from common.errors import Conflict, GntError, InvalidRequest, NotFound
from common.messages import Order
from common.model.disk import Disk
from common.model.instance import Instance
from common.model.node import Node, NodeRef
from common.noderpc.mirrors import CopyState, Mirrors
from common.noderpc.physical_volumes import PhysicalVolumes, VolumeGroupReport
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import NodeArgument
from coordinator.operations.locking import wanted
from coordinator.operations.node.storage_units import UnitType
from coordinator.operations.parameter import Syntax, argument, option
from coordinator.operations.specs import disk_spec
from coordinator.operations.step import Step
from coordinator.operations.steps.checks import check_online
from coordinator.state.config import Config


class RepairStoragePlan(Order):
    node: NodeRef
    group: str
    broken: tuple[str, ...]


@operation("OP_REPAIR_NODE_STORAGE")
class RepairStorage(Operation[None, RepairStoragePlan], kw_only=True):
    """Take missing physical volumes out of a volume group, and what was on them with them.

    Refused unless every disk that has something on them has a good copy on another node.
    """

    node_name: NodeArgument
    storage_type: Annotated[UnitType, argument("lvm-vg")]
    name: Annotated[str, argument("of the volume group")]
    ignore_consistency: Annotated[
        bool,
        option(
            "--ignore-consistency",
            help="even if data is lost for good; the job says which",
            syntax=Syntax.FLAG,
        ),
    ] = False

    def locks(self, config: Config, _: None) -> Wanted:
        node = config.node(self.node_name)
        return wanted(nodes_exclusive=[node.uuid], room=[node.uuid])

    async def prepare(self, cluster: Cluster, _: None) -> RepairStoragePlan:
        if self.storage_type is not UnitType.VOLUME_GROUP:
            raise InvalidRequest(
                f"Storage units of the type {self.storage_type} cannot be repaired, but those of "
                f"the type {UnitType.VOLUME_GROUP}."
            )
        node = cluster.config.node(self.node_name)
        check_online(node)
        group = await self._find(cluster, node)
        lost = await losses(cluster, node, group)
        if lost and not self.ignore_consistency:
            raise Conflict(
                f"{' '.join(lost)} Mend that first, or add --ignore-consistency to lose it.",
                node=node.name,
            )
        for loss in lost:
            cluster.log(f"{loss} It is lost, as asked.")
        for name in group.broken:
            cluster.log(f"The volume {group.name}/{name} goes with its device.")
        return RepairStoragePlan(node=node.ref, group=group.name, broken=group.broken)

    def recipe(self, cluster: Cluster, plan: RepairStoragePlan) -> Iterator[Step]:
        volumes = cluster.call(PhysicalVolumes, plan.node)
        yield Step(
            f"take missing physical volumes out of {plan.group} on {plan.node}",
            do=lambda: volumes.forget_missing(group=plan.group, broken=plan.broken),
            point_of_no_return=True,
        )

    async def _find(self, cluster: Cluster, node: Node) -> VolumeGroupReport:
        groups = await cluster.call(PhysicalVolumes, node).groups()
        found = next((each for each in groups if each.name == self.name), None)
        if found is None:
            raise NotFound(
                f"Node {node.name} has no volume group “{self.name}”; it has "
                f"{', '.join(each.name for each in groups) or 'none'}.",
                node=node.name,
            )
        if not found.missing:
            raise Conflict(
                f"The volume group {found.name} on {node.name} misses no physical volume; there "
                "is nothing to repair."
            )
        return found


async def losses(cluster: Cluster, node: Node, group: VolumeGroupReport) -> list[str]:
    """Say of each disk with a broken volume that no other node has a good copy of it."""
    config, found = cluster.config, []
    broken = {f"{group.name}/{name}" for name in group.broken}
    for instance in config.made_instances:
        if node.uuid not in config.nodes_of(instance):
            continue
        for index, disk in enumerate(config.disks_of(instance)):
            if broken.intersection(disk.backing.paths):
                why = await _lack(cluster, node, instance, disk)
                if why:
                    name = f"disk {index} of {instance.name}"
                    found.append(f"No other node has a good copy of {name}: {why}.")
    return found


async def _lack(cluster: Cluster, node: Node, instance: Instance, disk: Disk) -> str:
    """Say what is wrong with the copy on the other node; nothing if it is proven to be good."""
    others = [uuid for uuid in disk.nodes if uuid != node.uuid]
    if not others:
        return "there is this one only"
    other = cluster.config.nodes[others[0]]
    if other.uuid in disk.behind:
        return f"that on {other.name} is known to be behind"
    if other.offline:
        return f"{other.name}, which has one, is offline"
    spec = disk_spec(cluster.config, instance, disk)
    try:
        (found,) = await cluster.call(Mirrors, other).status(disks=(spec,))
    except GntError as error:
        return f"{other.name}, which has one, does not tell how it is ({error.message})"
    if found is None:
        return f"that on {other.name} is not attached, so nothing tells how it is"
    return "" if found.own is CopyState.UP_TO_DATE else f"that on {other.name} is {found.own}"
