"""Have the disks of an instance be again what a snapshot kept of them."""

from collections.abc import Iterator
from functools import partial
from typing import Annotated

from common.errors import Conflict, InvalidRequest
from common.messages import Order
from common.model.instance import Instance
from common.model.node import Node, NodeRef
from common.noderpc.disks import Disks
from common.noderpc.snapshots import Snapshots, SnapshotSpec
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import InstanceArgument
from coordinator.operations.instance.kept import check_of_all, find_kept
from coordinator.operations.instance.whereabouts import check_settled
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import argument
from coordinator.operations.step import Step, act
from coordinator.operations.steps.checks import (
    check_not_elsewhere,
    check_online,
    find_guest,
    may_run,
)
from coordinator.operations.steps.finishing import until_finished
from coordinator.state.config import Config


class RollbackPlan(Order, kw_only=True):
    instance: Instance
    node: NodeRef
    snapshots: tuple[SnapshotSpec, ...]


@operation("OP_INSTANCE_ROLLBACK")
class RollBack(Operation[None, RollbackPlan], kw_only=True):
    """Have the disks of a stopped instance be again as in a snapshot, which stays."""

    instance_name: InstanceArgument
    name: Annotated[str, argument("name of the snapshot")]

    def locks(self, config: Config, _: None) -> Wanted:
        instance = config.instance(self.instance_name)
        return wanted(instance=instance.name, nodes=config.nodes_of(instance))

    async def prepare(self, cluster: Cluster, _: None) -> RollbackPlan:
        config = cluster.config
        instance = config.instance(self.instance_name)
        check_settled(cluster, instance)
        node = config.nodes[instance.primary_node]
        check_online(node)
        kept = find_kept(config, instance, self.name)
        check_of_all(instance, self.name, kept)
        if not instance.disk_template.traits.rolls_back:
            raise InvalidRequest(
                f"Disks of the template {instance.disk_template} cannot be rolled back; whoever "
                f"keeps them may do that."
            )
        await _check_stopped(cluster, instance, node)
        snapshots = tuple(each.spec for each in kept)
        there = await cluster.call(Disks, node).find(disks=tuple(each.kept for each in snapshots))
        for each, found in zip(kept, there, strict=True):
            if found is None:
                raise Conflict(
                    f"What the snapshot {self.name} kept of disk {each.number} of "
                    f"{instance.name} is missing on {node.name}.",
                    instance=instance.name,
                )
        return RollbackPlan(instance=instance, node=node.ref, snapshots=snapshots)

    def recipe(self, cluster: Cluster, plan: RollbackPlan) -> Iterator[Step]:
        yield Step(f"give up what is on the disks of {plan.instance.name}", point_of_no_return=True)
        for index, snapshot in enumerate(plan.snapshots):
            yield _roll_back(cluster, index, self.name, snapshot, plan.node)


def _roll_back(
    cluster: Cluster, index: int, name: str, snapshot: SnapshotSpec, node: NodeRef
) -> Step:
    title = f"roll disk {index} back to {name} on {node}"
    ask = partial(cluster.call(Snapshots, node).roll_back, snapshot=snapshot)
    return act(title, lambda: until_finished(cluster, title, ask))


async def _check_stopped(cluster: Cluster, instance: Instance, node: Node) -> None:
    if may_run(await find_guest(cluster, instance, node)):
        raise Conflict(
            f"{instance.name} runs, and would not know what happens to its disks: stop it first.",
            instance=instance.name,
        )
    await check_not_elsewhere(cluster, instance, node)
    if instance.disks_active:
        raise Conflict(
            f"The disks of {instance.name} are attached; “gnt-instance deactivate-disks "
            f"{instance.name}” detaches them.",
            instance=instance.name,
        )
