"""Keep what is on the disks of an instance as it is now."""

from collections.abc import Iterable, Iterator
from typing import Annotated

from msgspec import Meta

from common.errors import Conflict, InvalidRequest
from common.messages import Order
from common.model.disk import Disk
from common.model.instance import Instance
from common.model.node import NodeRef
from common.noderpc.snapshots import SnapshotSpec
from coordinator.disks.kinds import KINDS, kind_of
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import FreezeOption, InstanceArgument, RoomOption
from coordinator.operations.instance.kept import find_problems, plan_snapshots, with_snapshots
from coordinator.operations.instance.whereabouts import check_settled
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import argument
from coordinator.operations.placement.growth import promise_of_space, take_space
from coordinator.operations.placement.promises import PlannedInstance, Promise
from coordinator.operations.specs import disk_spec
from coordinator.operations.step import Step
from coordinator.operations.steps.changes import change
from coordinator.operations.steps.checks import (
    check_answers,
    check_has_disks,
    check_online,
    find_guest,
    is_alive,
)
from coordinator.operations.steps.snapshots import take_snapshots
from coordinator.state.config import Config

SnapshotName = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}$",
        description="1 to 64 letters, digits and “_.+-”, and begins with a letter or digit",
    ),
]


class SnapshotPlan(Order, kw_only=True):
    instance: Instance
    node: NodeRef
    before: tuple[Disk, ...]
    after: tuple[Disk, ...]  # with the new snapshots
    snapshots: tuple[SnapshotSpec, ...]
    now: float


@operation("OP_INSTANCE_SNAPSHOT")
class TakeSnapshot(Operation[None, SnapshotPlan], kw_only=True):
    """Keep what is on all disks of an instance now; one that runs stands still for a moment."""

    instance_name: InstanceArgument
    name: Annotated[SnapshotName, argument("name of the snapshot")]
    room: RoomOption = None
    freeze: FreezeOption = False

    def locks(self, config: Config, _: None) -> Wanted:
        instance = config.instance(self.instance_name)
        nodes = config.nodes_of(instance)
        return wanted(instance=instance.name, nodes=nodes, room=nodes)

    async def prepare(self, cluster: Cluster, _: None) -> SnapshotPlan:
        config = cluster.config
        instance = config.instance(self.instance_name)
        check_has_disks(instance)
        check_settled(cluster, instance)
        disks, node = config.disks_of(instance), config.nodes[instance.primary_node]
        self._check_possible(instance, disks)
        check_online(node)
        found = await find_guest(cluster, instance, node)
        check_answers(found, instance, node)
        if is_alive(found):
            cluster.log(f"{instance.name} runs, and stands still for a moment.")
        kind, now = kind_of(instance.disk_template), cluster.now()
        there = [disk_spec(config, instance, disk) for disk in disks]
        specs = plan_snapshots(cluster, kind, there, self.room)
        if specs is None:
            raise InvalidRequest(f"Snapshots cannot be taken of all disks of {instance.name}.")
        if problems := await find_problems(cluster, instance, specs):
            raise InvalidRequest(
                f"No snapshot of {instance.name} can be taken on {node.name}: {' '.join(problems)}"
            )
        after = with_snapshots(instance, disks, specs, self.name, now)
        await take_space(cluster, promise_of_space(PlannedInstance(instance, after)), [node])
        return SnapshotPlan(
            instance=instance, node=node.ref, before=disks, after=after, snapshots=specs, now=now
        )

    def promises(self, plan: SnapshotPlan) -> Iterable[Promise]:
        return [promise_of_space(PlannedInstance(plan.instance, plan.after))]

    def recipe(self, cluster: Cluster, plan: SnapshotPlan) -> Iterator[Step]:
        what = f"the snapshot {self.name} of {plan.instance.name}"
        yield take_snapshots(cluster, what, plan.node, plan.snapshots, freeze=self.freeze)
        yield change(f"record {what}", plan.before, plan.after, plan.now)

    def _check_possible(self, instance: Instance, disks: tuple[Disk, ...]) -> None:
        if not instance.disk_template.traits.keeps_snapshots:
            able = ", ".join(name for name, kind in KINDS.items() if kind.traits.keeps_snapshots)
            raise InvalidRequest(
                f"Snapshots cannot be kept of disks of the template {instance.disk_template}, which"
                f" {instance.name} has; they can with {able}."
            )
        if any(each.name == self.name for disk in disks for each in disk.snapshots):
            raise Conflict(
                f"{instance.name} has a snapshot {self.name} already.", instance=instance.name
            )
