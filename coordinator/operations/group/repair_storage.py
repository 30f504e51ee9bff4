"""Repair the storage of a node that has lost devices, where that is the only one."""

from typing import Annotated, Any

from common.errors import GntError
from common.messages import Order
from common.model.node import Node
from common.model.pool_kind import PoolKind
from common.noderpc.physical_volumes import PhysicalVolumes, VolumeGroupReport
from coordinator.disks.kinds import pools_of
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.follow_up import FollowUp, FollowUps
from coordinator.operations.instance.replace_disks import ReplaceDisks
from coordinator.operations.locking import wanted
from coordinator.operations.node.repair_storage import RepairStorage
from coordinator.operations.node.storage_units import UnitType
from coordinator.operations.parameter import argument
from coordinator.state.config import Config


class StorageRepair(Order):
    """One job, if there is something to repair: the node's groups, then what was on them."""

    orders: tuple[FollowUp, ...] = ()


@operation("OP_GROUP_REPAIR_STORAGE")
class RepairStorageOfGroup(Operation[None, StorageRepair], kw_only=True):
    """Have the only node of a group that has lost devices do without them; the watcher asks.

    If several have, something else is wrong with them most probably, and an operator has to look.
    """

    group_name: Annotated[str, argument("group to look at")]

    def locks(self, config: Config, _: None) -> Wanted:
        return wanted(groups=[config.group(self.group_name).uuid])

    async def prepare(self, cluster: Cluster, _: None) -> StorageRepair:
        config = cluster.config
        group = config.group(self.group_name)
        nodes = [
            node
            for node in config.sorted_nodes()
            if node.group == group.uuid and node.vm_capable and not node.offline
        ]
        answers = await cluster.each(
            {node.uuid: cluster.call(PhysicalVolumes, node).groups() for node in nodes}
        )
        pools = (pool for pool in pools_of(config) if pool.kind is PoolKind.VOLUME_GROUP)
        used = {pool.name.partition("/")[0] for pool in pools}  # without thin pools of theirs
        lacking: list[tuple[Node, list[VolumeGroupReport]]] = []
        for node in nodes:
            told = answers[node.uuid]
            if isinstance(told, GntError):
                cluster.log(f"Nothing is repaired, as {node.name} does not tell of devices: {told}")
                return StorageRepair()
            if bad := [each for each in told if each.missing and each.name in used]:
                lacking.append((node, bad))
        if len(lacking) > 1:
            names = ", ".join(node.name for node, _ in lacking)
            cluster.log(
                f"Several nodes lack devices at once ({names}), so nothing is repaired by itself: "
                "see to what they have in common, then use “gnt-node repair-storage”."
            )
            return StorageRepair()
        if not lacking:
            cluster.log(f"No node of group {group.name} lacks a device.")
            return StorageRepair()
        ((node, bad),) = lacking
        cluster.log(f"Only {node.name} lacks devices, of {', '.join(each.name for each in bad)}.")
        return StorageRepair(orders=tuple(_orders(config, node, bad)))

    def jobs(self, plan: StorageRepair) -> FollowUps:
        return [plan.orders] if plan.orders else []

    def result(self, plan: StorageRepair) -> dict[str, Any]:  # noqa: ARG002
        return {"jobs": []}


def _orders(config: Config, node: Node, bad: list[VolumeGroupReport]) -> list[FollowUp]:
    orders: list[Operation[Any, Any]] = [
        RepairStorage(node_name=node.name, storage_type=UnitType.VOLUME_GROUP, name=each.name)
        for each in bad
    ]
    there = (*config.instances_on(node.uuid), *config.instances_with_secondary(node.uuid))
    orders += [
        ReplaceDisks(instance_name=instance.name, auto=True)
        for instance in there
        if instance.disk_template.traits.is_mirrored and not instance.forthcoming
    ]
    return [FollowUp(input=each.to_input()) for each in orders]
