"""Stop an instance."""

from collections.abc import Iterator
from typing import Annotated

from common.errors import Conflict
from common.messages import Order
from common.model.instance import AdminState, Instance, StateSource
from common.model.node import NodeRef
from common.names import InstanceId, NodeId
from common.noderpc.instances import GuestReport, GuestSpec
from coordinator.disks.holding import Handover
from coordinator.disks.kinds import kind_of
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import IgnoreOffline, InstanceArgument, NoRemember, Patience
from coordinator.operations.instance.whereabouts import others
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, hidden, option
from coordinator.operations.specs import present_guest
from coordinator.operations.step import Step, record
from coordinator.operations.steps.checks import check_online, find_guest, may_run
from coordinator.operations.steps.disks import homes
from coordinator.operations.steps.edits import set_admin_state
from coordinator.operations.steps.guests import end_elsewhere, mark, settle, stop_guest
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
    source: StateSource = StateSource.ADMIN
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
    admin_state_source: Annotated[
        StateSource | None, hidden("“user”: record that its user has turned it off; the watcher's")
    ] = None

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
        found = None if out_of_reach else await find_guest(cluster, instance, node)
        if not self.force:
            _check_whole(instance, found)
        was_running = may_run(found)
        if self._by_user:
            _check_turned_off(config, instance, found)
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
            source=StateSource.USER if self._by_user else StateSource.ADMIN,
            wait_s=0.0 if self.force else float(self.timeout),
            now=cluster.now(),
        )

    @property
    def _by_user(self) -> bool:
        return self.admin_state_source is StateSource.USER

    def recipe(self, cluster: Cluster, plan: StopPlan) -> Iterator[Step]:
        # Recorded first: should the coordinator die in between, nobody starts it again.
        if plan.remember and plan.before is AdminState.UP:  # one that is offline stays so
            yield from _mark_down(plan)
        yield from end_elsewhere(cluster, plan.guest, plan.others)
        if plan.node:
            yield from stop_guest(
                cluster,
                plan.guest,
                plan.node,
                plan.detach,
                plan.now,
                wait_s=plan.wait_s,
                was_running=plan.was_running,
            )
            yield from settle(plan.instance, plan.guest.name, plan.maybe_on, plan.now)


def _mark_down(plan: StopPlan) -> Iterator[Step]:
    if plan.source is StateSource.USER:
        # Its user's wish is a fact, and what shows it is cleared away with the guest.
        yield record(
            f"mark {plan.guest.name} as turned off by its user",
            set_admin_state(plan.instance, AdminState.DOWN, plan.now, source=plan.source),
            point_of_no_return=True,
        )
    else:
        yield from mark(
            plan.instance, plan.guest.name, plan.now, before=plan.before, after=AdminState.DOWN
        )


def _check_whole(instance: Instance, found: GuestReport | None) -> None:
    """Refuse to ask half of a guest to power off: it may need the other half for that.

    Raises:
        Conflict: says how it becomes whole, and how it is ended as it is.
    """
    if found is not None and found.rest:
        raise Conflict(
            f"The memory of {instance.name} is on two nodes still, and it may need all of it to "
            f"power off. “gnt-instance migrate --cleanup {instance.name}” sees the rest come; "
            f"“gnt-instance shutdown --force {instance.name}” ends it as it is.",
            instance=instance.name,
        )


def _check_turned_off(config: Config, instance: Instance, found: GuestReport | None) -> None:
    """Refuse to record a wish of a user that is none, or not any more.

    Raises:
        Conflict: says how it is.
    """
    if not config.cluster.enabled_user_shutdown:
        raise Conflict(
            "Users may not turn their instances off here; “gnt-cluster modify --user-shutdown=yes” "
            "lets them."
        )
    if instance.admin_state is not AdminState.UP or found is None or not found.user_down:
        state = found.state if found else "not there"
        raise Conflict(
            f"Instance {instance.name} was not turned off by its user: it is marked "
            f"{instance.admin_state}, and its guest is {state}.",
            instance=instance.name,
        )
