"""Detach the disks of an instance that does not run."""

from collections.abc import Iterator
from typing import Annotated

from common.errors import Conflict
from common.messages import Order
from common.model.node import NodeRef
from common.names import InstanceId
from common.noderpc.instances import GuestSpec
from coordinator.disks.holding import Handover
from coordinator.disks.kinds import kind_of
from coordinator.disks.mirrors import mirrored
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import InstanceArgument
from coordinator.operations.instance.whereabouts import settled_home
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, option
from coordinator.operations.specs import present_guest
from coordinator.operations.step import Step, act, record
from coordinator.operations.steps.checks import find_guest, may_run
from coordinator.operations.steps.disks import hold, homes
from coordinator.operations.steps.edits import set_disks_active
from coordinator.operations.steps.mirrors import see_copies
from coordinator.state.config import Config


class DeactivatePlan(Order, kw_only=True):
    instance: InstanceId
    node: NodeRef
    guest: GuestSpec
    detach: Handover  # undone, they are as they were
    were_active: bool
    now: float


@operation("OP_INSTANCE_DEACTIVATE_DISKS")
class DeactivateDisks(Operation[None, DeactivatePlan], kw_only=True):
    """Detach an instance's disks, which were attached without starting it."""

    instance_name: InstanceArgument
    force: Annotated[
        bool,
        option(
            "-f",
            "--force",
            help="do not ask whether it runs; what is in use stays attached all the same",
            syntax=Syntax.FLAG,
        ),
    ] = False

    def locks(self, config: Config, _: None) -> Wanted:
        instance = config.instance(self.instance_name)
        return wanted(instance=instance.name, nodes=config.nodes_of(instance))

    async def prepare(self, cluster: Cluster, _: None) -> DeactivatePlan:
        config = cluster.config
        instance = config.instance(self.instance_name)
        node = settled_home(cluster, instance)
        if not self.force and may_run(await find_guest(cluster, instance, node)):
            raise Conflict(
                f"Instance {instance.name} runs and uses its disks; stop it with “gnt-instance "
                f"shutdown {instance.name}”, which detaches them.",
                instance=instance.name,
            )
        kind, at = kind_of(instance.disk_template), homes(config, instance, node.ref)
        return DeactivatePlan(
            instance=instance.uuid,
            node=node.ref,
            guest=present_guest(config, instance),
            detach=kind.after_stop(at, was_running=instance.disks_active),
            were_active=instance.disks_active,
            now=cluster.now(),
        )

    def recipe(self, cluster: Cluster, plan: DeactivatePlan) -> Iterator[Step]:
        guest, detach = plan.guest, plan.detach
        if mirrored(guest):
            yield see_copies(cluster, guest, plan.node, plan.now)
        yield act(
            f"detach the disks of {guest.name}",
            lambda: hold(cluster, guest, detach.do),
            undo=lambda: hold(cluster, guest, detach.undo),
        )
        if plan.were_active:
            yield record(
                "record that they are not attached",
                set_disks_active(plan.instance, plan.now, active=False),
                undo=set_disks_active(plan.instance, plan.now, active=True),
            )
