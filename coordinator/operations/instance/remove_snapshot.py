"""Delete a snapshot of an instance."""

from collections.abc import Iterator
from typing import Annotated

from msgspec.structs import replace

from common.messages import Order
from common.model.disk import Disk
from common.model.instance import Instance
from common.model.node import Node, NodeRef
from common.noderpc.disks import DiskSpec
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import InstanceArgument
from coordinator.operations.instance.kept import Kept, find_kept
from coordinator.operations.instance.whereabouts import check_settled
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import argument
from coordinator.operations.step import Step, record
from coordinator.operations.steps.changes import turn
from coordinator.operations.steps.checks import check_online
from coordinator.operations.steps.snapshots import delete_snapshot
from coordinator.state.config import Config


class RemoveSnapshotPlan(Order, kw_only=True):
    instance: Instance
    node: NodeRef
    before: tuple[Disk, ...]
    after: tuple[Disk, ...]
    kept: tuple[tuple[int, DiskSpec], ...]  # with the numbers of the disks
    now: float


@operation("OP_INSTANCE_REMOVE_SNAPSHOT")
class RemoveSnapshot(Operation[None, RemoveSnapshotPlan], kw_only=True):
    """Delete what a snapshot has kept of an instance's disks, which stay as they are."""

    instance_name: InstanceArgument
    name: Annotated[str, argument("name of the snapshot")]

    def locks(self, config: Config, _: None) -> Wanted:
        instance = config.instance(self.instance_name)
        return wanted(instance=instance.name, nodes=config.nodes_of(instance))

    async def prepare(self, cluster: Cluster, _: None) -> RemoveSnapshotPlan:
        config = cluster.config
        instance = config.instance(self.instance_name)
        check_settled(cluster, instance)
        found = find_kept(config, instance, self.name)
        node = config.nodes[found[0].node]
        if node.offline and node.uuid != instance.primary_node:
            cluster.log(
                f"{node.name} is marked offline, so what it kept is left there; when it is back, "
                f"“gnt-node remove-leftovers {node.name}” deletes it."
            )
            return self._plan(cluster, instance, node, found, kept=())
        check_online(node)
        return self._plan(cluster, instance, node, found, kept=found)

    def _plan(
        self,
        cluster: Cluster,
        instance: Instance,
        node: Node,
        found: tuple[Kept, ...],
        *,
        kept: tuple[Kept, ...],
    ) -> RemoveSnapshotPlan:
        """Plan to forget a snapshot, and to delete of it what is ``kept``."""
        before = tuple(each.disk for each in found)
        after = tuple(
            replace(disk, snapshots=tuple(s for s in disk.snapshots if s.name != self.name))
            for disk in before
        )
        return RemoveSnapshotPlan(
            instance=instance,
            node=node.ref,
            before=before,
            after=after,
            kept=tuple((each.number, each.spec.kept) for each in kept),
            now=cluster.now(),
        )

    def recipe(self, cluster: Cluster, plan: RemoveSnapshotPlan) -> Iterator[Step]:
        what = f"the snapshot {self.name} of {plan.instance.name}"
        yield Step(f"give up {what}", point_of_no_return=True)
        for index, kept in plan.kept:
            yield delete_snapshot(cluster, index, self.name, kept, plan.node)
        yield record(f"forget {what}", turn(plan.before, plan.after, plan.now))
