"""Have the disks of an instance be again what a snapshot kept of them."""

from collections.abc import Iterator
from functools import partial
from typing import Annotated

from common.errors import Conflict, InvalidRequest
from common.messages import Order
from common.model.instance import Instance
from common.model.node import Node, NodeRef
from common.noderpc.disks import Disks
from common.noderpc.instances import GuestSpec
from common.noderpc.snapshots import Snapshots, SnapshotSpec
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import InstanceArgument, WaitForSync
from coordinator.operations.instance.kept import Kept, check_of_all, find_kept
from coordinator.operations.instance.whereabouts import check_settled
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import argument
from coordinator.operations.specs import present_guest
from coordinator.operations.step import Step, act
from coordinator.operations.steps.checks import (
    check_not_elsewhere,
    check_online,
    find_guest,
    may_run,
)
from coordinator.operations.steps.finishing import until_finished
from coordinator.operations.steps.mirrors import copy_anew, give_up_copies, let_go
from coordinator.operations.steps.snapshots import check_no_snapshots
from coordinator.state.config import Config


class RollbackPlan(Order, kw_only=True):
    """``copies`` are the other nodes of mirrored disks; their copies are made anew."""

    instance: Instance
    node: NodeRef
    snapshots: tuple[SnapshotSpec, ...]
    guest: GuestSpec | None = None
    copies: tuple[NodeRef, ...] = ()
    now: float = 0.0


@operation("OP_INSTANCE_ROLLBACK")
class RollBack(Operation[None, RollbackPlan], kw_only=True):
    """Have the disks of a stopped instance be again as in a snapshot, which stays."""

    instance_name: InstanceArgument
    name: Annotated[str, argument("name of the snapshot")]
    wait_for_sync: WaitForSync = True

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
        copies = self._check_copies(config, instance, node, kept)
        snapshots = tuple(each.spec for each in kept)
        there = await cluster.call(Disks, node).find(disks=tuple(each.kept for each in snapshots))
        for each, found in zip(kept, there, strict=True):
            if found is None:
                raise Conflict(
                    f"What the snapshot {self.name} kept of disk {each.number} of "
                    f"{instance.name} is missing on {node.name}.",
                    instance=instance.name,
                )
        return RollbackPlan(
            instance=instance,
            node=node.ref,
            snapshots=snapshots,
            guest=present_guest(config, instance),
            copies=tuple(each.ref for each in copies),
            now=cluster.now(),
        )

    def _check_copies(
        self, config: Config, instance: Instance, home: Node, kept: tuple[Kept, ...]
    ) -> tuple[Node, ...]:
        """Return who else has copies of the disks.

        Raises:
            Conflict: the snapshot is on one of them, or another one is; or the copy beside it is
                behind.
        """
        others = [config.nodes[uuid] for uuid in config.secondary_nodes(instance)]
        for other in others:
            check_online(other)
            if any(each.node == other.uuid for each in kept):
                raise Conflict(
                    f"The snapshot {self.name} is on {other.name}, and {instance.name} on "
                    f"{home.name}: “gnt-instance failover {instance.name}” has it be there.",
                    instance=instance.name,
                )
            if any(home.uuid in each.disk.behind for each in kept):
                raise Conflict(
                    f"The copy of {instance.name} on {home.name} is behind; “gnt-instance "
                    f"activate-disks --wait-for-sync {instance.name}” makes both equal first.",
                    instance=instance.name,
                )
            check_no_snapshots(instance, config.disks_of(instance), "given up", on=other)
        return tuple(others)

    def recipe(self, cluster: Cluster, plan: RollbackPlan) -> Iterator[Step]:
        name = plan.instance.name
        if plan.guest and plan.copies:
            # All nodes that are needed have to answer before there is no way back.
            yield let_go(cluster, plan.guest, (plan.node, *plan.copies))
        yield Step(f"give up what is on the disks of {name}", point_of_no_return=True)
        if plan.guest and plan.copies:
            yield from give_up_copies(cluster, plan.guest, plan.copies, plan.now)
        for index, snapshot in enumerate(plan.snapshots):
            yield _roll_back(cluster, index, self.name, snapshot, plan.node)
        if plan.guest and plan.copies and self.wait_for_sync:
            yield from copy_anew(cluster, plan.guest, plan.node, plan.copies, plan.now)


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
