"""Delete a disk that belongs to no instance."""

from collections.abc import Iterator
from itertools import islice
from typing import Annotated

from common.errors import Conflict
from common.messages import Order
from common.model.disk import Disk
from common.model.node import Node, NodeRef
from common.noderpc.disks import Disks, DiskSpec
from coordinator.disks.kinds import kind_of
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.instance.which import find_detached
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import argument
from coordinator.operations.step import Step, record
from coordinator.state.config import Config
from coordinator.state.rows import Delete


class RemoveDiskPlan(Order, kw_only=True):
    disk: Disk
    spec: DiskSpec
    nodes: tuple[NodeRef, ...]


@operation("OP_DISK_REMOVE")
class RemoveDisk(Operation[None, RemoveDiskPlan], kw_only=True):
    """Delete a disk that was detached from its instance, with all the data on it."""

    disk_name: Annotated[str, argument("UUID or name of the disk, as “gnt-cluster info” tells it")]

    def locks(self, config: Config, _: None) -> Wanted:
        disk = find_detached(config, self.disk_name)
        return wanted(disks=[disk.uuid], nodes=[node.uuid for node in _nodes(config, disk)])

    async def prepare(self, cluster: Cluster, _: None) -> RemoveDiskPlan:
        config = cluster.config
        disk = find_detached(config, self.disk_name)
        assert disk.template is not None
        nodes = _nodes(config, disk)
        if all(node.offline for node in nodes):
            raise Conflict(
                f"No node that has the disk {disk.uuid} is online; bring one back, or the disk "
                "would be left there.",
                disk=disk.uuid,
            )
        for node in nodes:
            if node.offline:
                cluster.log(
                    f"{node.name} is offline, so its copy of the disk is left there; when it is "
                    "back, “gnt-cluster verify” names it."
                )
        return RemoveDiskPlan(
            disk=disk,
            spec=kind_of(disk.template).detached_spec(config, disk),
            nodes=tuple(node.ref for node in nodes if not node.offline),
        )

    def recipe(self, cluster: Cluster, plan: RemoveDiskPlan) -> Iterator[Step]:
        for node in plan.nodes:
            yield _delete(cluster, plan, node)
        yield record(f"remove the disk {plan.disk.uuid}", lambda _: [Delete(plan.disk)])


def _nodes(config: Config, disk: Disk) -> list[Node]:
    """Return the nodes that have a disk; of one that all nodes reach, the first that may do so."""
    if disk.nodes:
        return [config.nodes[uuid] for uuid in disk.nodes]
    able = (node for node in config.sorted_nodes() if node.vm_capable and not node.offline)
    return list(islice(able, 1))


def _delete(cluster: Cluster, plan: RemoveDiskPlan, node: NodeRef) -> Step:
    disks = cluster.call(Disks, node)

    async def delete() -> None:
        await disks.detach(disks=(plan.spec,))
        await disks.ensure_absent(disk=plan.spec)

    # What is gone from one node is gone; asked again, the rest goes.
    title = f"delete the disk {plan.disk.uuid} on {node}"
    return Step(title, do=delete, point_of_no_return=node == plan.nodes[0])
