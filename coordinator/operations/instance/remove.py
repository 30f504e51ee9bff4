"""Delete an instance with all it has."""

from collections.abc import Iterator
from typing import Annotated, ClassVar

from common.errors import Conflict, GntError
from common.messages import Order
from common.model.disk import Disk
from common.model.instance import AdminState, Instance
from common.model.nic import Nic
from common.model.node import NodeRef
from common.noderpc.instances import GuestSpec
from coordinator.disks.holding import Handover, Hold
from coordinator.disks.kinds import kind_of
from coordinator.locks.names import Wanted
from coordinator.operating_systems.parameters import forget_instance
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import InstanceArgument, ShutdownTimeout
from coordinator.operations.instance.reserve import reservation_of
from coordinator.operations.instance.whereabouts import check_settled
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, hidden, option
from coordinator.operations.specs import present_guest
from coordinator.operations.step import Edit, Step, act, record
from coordinator.operations.steps.checks import check_online, find_guest, may_run
from coordinator.operations.steps.disks import delete_disk, hold, homes
from coordinator.operations.steps.edits import set_admin_state
from coordinator.operations.steps.guests import shut_down, stop_guest
from coordinator.operations.steps.snapshots import delete_snapshot
from coordinator.state.config import Config
from coordinator.state.rows import Delete, Put


class RemovePlan(Order, kw_only=True):
    homes: tuple[NodeRef, ...]  # its primary node first
    instance: Instance
    disks: tuple[Disk, ...]
    nics: tuple[Nic, ...]
    guest: GuestSpec
    detach: Handover
    was_running: bool
    ignore_failures: bool
    wait_s: float
    now: float


@operation("OP_INSTANCE_REMOVE")
class RemoveInstance(Operation[None, RemovePlan], kw_only=True):
    """Stop an instance and delete its disks and its record."""

    takes_reservations: ClassVar[bool] = True

    instance_name: InstanceArgument
    shutdown_timeout: ShutdownTimeout = 120
    ignore_failures: Annotated[
        bool,
        option(
            "--ignore-failures",
            help="forget it even if its node or disks cannot be reached",
            syntax=Syntax.FLAG,
        ),
    ] = False
    if_expired: Annotated[
        bool, hidden("only what is reserved still, and was so for long enough")
    ] = False

    def locks(self, config: Config, _: None) -> Wanted:
        instance = config.instance(self.instance_name)
        return wanted(instance=instance.name, nodes=config.nodes_of(instance))

    async def prepare(self, cluster: Cluster, _: None) -> RemovePlan:
        config = cluster.config
        instance = config.instance(self.instance_name)
        if self.if_expired:
            _check_expired(instance, cluster.now())
        node = config.nodes[instance.primary_node]
        at = homes(config, instance, node.ref)
        was_running = not instance.forthcoming and await self._may_run(cluster, instance, at)
        for away in (config.nodes[uuid] for uuid in config.secondary_nodes(instance)):
            if away.offline and not instance.forthcoming:
                cluster.log(
                    f"{away.name} is offline, so its copies of the disks are left there; when it "
                    "is back, “gnt-cluster verify” names them."
                )
        return RemovePlan(
            homes=at,
            instance=instance,
            disks=config.disks_of(instance),
            nics=config.nics_of(instance),
            guest=present_guest(config, instance),
            was_running=was_running,
            detach=kind_of(instance.disk_template).after_stop(at, was_running=was_running),
            ignore_failures=self.ignore_failures,
            wait_s=float(self.shutdown_timeout),
            now=cluster.now(),
        )

    async def _may_run(
        self, cluster: Cluster, instance: Instance, homes: tuple[NodeRef, ...]
    ) -> bool:
        """Tell whether it runs; all that have disks of it have to answer before any is deleted."""
        home, *others = (cluster.config.nodes[each.uuid] for each in homes)
        if not self.ignore_failures:
            check_settled(cluster, instance)
            check_online(home)
            for other in others:
                await find_guest(cluster, instance, other)
        try:
            return may_run(await find_guest(cluster, instance, home))
        except GntError:
            if not self.ignore_failures:
                raise
            return False

    def recipe(self, cluster: Cluster, plan: RemovePlan) -> Iterator[Step]:
        node = plan.homes[0]
        if plan.instance.forthcoming:
            yield record(
                f"forget the reserved {plan.guest.name}",
                lambda _: _deletions(plan),
                undo=lambda _: [Put(item) for item in _items(plan)],
            )
            return
        if plan.ignore_failures:
            title = f"shut down {plan.guest.name} on {node}"
            stop = act(title, lambda: shut_down(cluster, plan.guest.id, node, plan.wait_s))
            yield _tolerant(cluster, stop)
            for each in plan.detach.do:  # what one node does not do, the others do
                yield _tolerant(cluster, _let_go(cluster, plan, each))
        else:
            yield from stop_guest(
                cluster,
                plan.guest,
                node,
                plan.detach,
                plan.now,
                wait_s=plan.wait_s,
                was_running=plan.was_running,
            )
        yield from take_away(cluster, plan)


def as_down(plan: RemovePlan) -> Edit:
    """Record that nobody is to start it any more."""
    return set_admin_state(plan.instance.uuid, AdminState.DOWN, plan.now)


def take_away(cluster: Cluster, plan: RemovePlan) -> Iterator[Step]:
    """Delete the disks and the record of an instance that is stopped.

    From the first deleted disk on there is no way back; whatever fails after that leaves an
    instance that is down and can be removed again.
    """
    yield record(
        f"mark {plan.guest.name} as down",
        as_down(plan),
        point_of_no_return=True,
    )
    for step in _clear_away(cluster, plan):
        yield _tolerant(cluster, step) if plan.ignore_failures else step
    yield record(
        f"remove {plan.guest.name} from the configuration",
        lambda state: [*_deletions(plan), *forget_instance(state, plan.instance.uuid)],
    )


def _clear_away(cluster: Cluster, plan: RemovePlan) -> Iterator[Step]:
    kind = kind_of(plan.instance.disk_template)
    for index, (known, disk) in enumerate(zip(plan.disks, plan.guest.disks, strict=True)):
        for each in known.snapshots:
            kept = kind.is_kept_in(disk, each).kept
            holder = each.node or plan.homes[0].uuid
            for home in plan.homes:
                if home.uuid == holder:
                    yield delete_snapshot(cluster, index, each.name, kept, home)
        for home in plan.homes:
            yield delete_disk(cluster, index, disk, home)


def _let_go(cluster: Cluster, plan: RemovePlan, of_node: Hold) -> Step:
    title = f"detach the disks of {plan.guest.name} on {of_node.node}"
    return act(title, lambda: hold(cluster, plan.guest, (of_node,)))


def _tolerant(cluster: Cluster, step: Step) -> Step:
    """Try a step, and go on if it fails."""

    async def attempt() -> None:
        try:
            if step.do:
                await step.do()
        except GntError as error:
            cluster.log(f"Could not {step.title}, going on as asked: {error}")

    return act(step.title, attempt)


def _items(plan: RemovePlan) -> list[Instance | Disk | Nic]:
    return [plan.instance, *plan.disks, *plan.nics]


def _deletions(plan: RemovePlan) -> list[Delete]:
    return [Delete(item) for item in _items(plan)]


def _check_expired(instance: Instance, now: float) -> None:
    """Refuse to remove what was made, or given more time, since somebody looked.

    Raises:
        Conflict: says which.
    """
    expires_at = reservation_of(instance).expires_at
    if not 0 < expires_at <= now:
        raise Conflict(
            f"The reserved instance {instance.name} has not expired, and stays.",
            instance=instance.name,
        )
