"""Stop an instance."""

from collections.abc import Iterator
from typing import Annotated

from common.messages import Order
from common.model.instance import AdminState
from common.model.node import NodeRef
from common.names import InstanceId, NodeId
from common.noderpc.instances import GuestSpec
from coordinator.disks.holding import Handover
from coordinator.disks.kinds import kind_of
from coordinator.disks.mirrors import mirrored
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import IgnoreOffline, InstanceArgument, NoRemember, Patience
from coordinator.operations.instance.whereabouts import others
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, option
from coordinator.operations.specs import present_guest
from coordinator.operations.step import Step
from coordinator.operations.steps.checks import check_online, find_guest, may_run
from coordinator.operations.steps.disks import homes
from coordinator.operations.steps.guests import end_elsewhere, mark, settle, shut_down_guest
from coordinator.operations.steps.mirrors import part_copies
from coordinator.state.config import Config


class StopPlan(Order, kw_only=True):
    instance: InstanceId
    node: NodeRef | None  # None: it is offline, and nothing can be done there
    guest: GuestSpec
    detach: Handover
    was_running: bool
    others: tuple[NodeRef, ...] = ()  # on which it may be, too
    maybe_on: tuple[NodeId, ...] = ()  # before
    before: AdminState
    remember: bool
    wait_s: float
    now: float


@operation("OP_INSTANCE_SHUTDOWN")
class ShutDownInstance(Operation[None, StopPlan], kw_only=True):
    """Have an instance power off; kill it when it has not done so in time."""

    instance_name: InstanceArgument
    timeout: Annotated[
        Patience, option("--timeout", help="seconds to wait before it is killed")
    ] = 120
    force: Annotated[
        bool, option("-f", "--force", help="kill it without asking", syntax=Syntax.FLAG)
    ] = False
    no_remember: NoRemember = False
    ignore_offline_nodes: IgnoreOffline = False

    def locks(self, config: Config, _: None) -> Wanted:
        instance = config.instance(self.instance_name)
        return wanted(instance=instance.name, nodes=config.nodes_of(instance))

    async def prepare(self, cluster: Cluster, _: None) -> StopPlan:
        config = cluster.config
        instance = config.instance(self.instance_name)
        node = config.nodes[instance.primary_node]
        out_of_reach = node.offline and self.ignore_offline_nodes
        if not out_of_reach:
            check_online(node)
        was_running = not out_of_reach and may_run(await find_guest(cluster, instance, node))
        return StopPlan(
            instance=instance.uuid,
            node=None if out_of_reach else node.ref,
            guest=present_guest(config, instance),
            was_running=was_running,
            detach=kind_of(instance.disk_template).after_stop(
                homes(config, instance, node.ref), was_running=was_running
            ),
            others=others(cluster, instance),
            maybe_on=instance.maybe_on,
            before=instance.admin_state,
            remember=not self.no_remember,
            wait_s=0.0 if self.force else float(self.timeout),
            now=cluster.now(),
        )

    def recipe(self, cluster: Cluster, plan: StopPlan) -> Iterator[Step]:
        # Recorded first: should the coordinator die in between, nobody starts it again.
        if plan.remember and plan.before is AdminState.UP:  # one that is offline stays so
            yield from mark(
                plan.instance, plan.guest.name, plan.now, before=plan.before, after=AdminState.DOWN
            )
        yield from end_elsewhere(cluster, plan.guest, plan.others)
        if plan.node:
            # What two nodes have is looked at between the guest's end and the parting.
            parts = bool(mirrored(plan.guest))
            detach = Handover(undo=plan.detach.undo) if parts else plan.detach
            yield shut_down_guest(
                cluster,
                plan.guest,
                plan.node,
                detach,
                wait_s=plan.wait_s,
                was_running=plan.was_running,
            )
            if parts:
                yield part_copies(cluster, plan.guest, plan.node, plan.detach.do, plan.now)
            yield from settle(plan.instance, plan.guest.name, plan.maybe_on, plan.now)
