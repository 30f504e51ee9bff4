"""Move a running instance without stopping it."""

from collections.abc import Iterable, Iterator
from typing import Annotated

from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest
from common.messages import Order
from common.model.any_hypervisor import MigrationMode
from common.model.hypervisors import HYPERVISORS
from common.noderpc.instances import GuestSpec, GuestState, Instances
from coordinator.disks.kinds import kind_of
from coordinator.locks.names import Wanted
from coordinator.operations.addresses import check_connected
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import (
    AllocatorOption,
    CleanupOption,
    InstanceArgument,
    LiveOption,
    MigrationModeOption,
    TargetNodeOption,
)
from coordinator.operations.instance.as_it_runs import as_it_runs, check_unchanged
from coordinator.operations.instance.cleanup import plan_cleanup, settle
from coordinator.operations.instance.failover import Failover, FailOverInstance
from coordinator.operations.instance.moving import (
    check_can_move,
    choose_target,
    locks_to_move,
    room_for,
)
from coordinator.operations.instance.place import Place, another_if_stale
from coordinator.operations.instance.replacement import plan_new_secondary
from coordinator.operations.instance.replacing import (
    ReplacePlan,
    drop_old,
    mirror_elsewhere,
    note_good,
    record_pair,
)
from coordinator.operations.instance.rest_of_memory import see_rest_come
from coordinator.operations.instance.second_copy import check_both_good
from coordinator.operations.instance.transfer import (
    MigratePlan,
    clear_away,
    clear_shell,
    receive,
    stop_transfer,
    transfer,
)
from coordinator.operations.instance.whereabouts import check_settled
from coordinator.operations.parameter import Syntax, option
from coordinator.operations.placement.fit import take_memory
from coordinator.operations.placement.promises import Promise
from coordinator.operations.specs import present_guest
from coordinator.operations.step import Step, act, record, saying
from coordinator.operations.steps.checks import (
    check_answers,
    check_online,
    find_guest,
    may_run,
)
from coordinator.operations.steps.disks import leave_disks
from coordinator.operations.steps.edits import set_maybe_on, set_primary
from coordinator.operations.steps.syncing import wait_for_sync
from coordinator.state.config import Config


class Migration(Order):
    """A move, or a failover where nothing runs that could be moved."""

    move: MigratePlan | None = None
    failover: Failover | None = None


@operation("OP_INSTANCE_MIGRATE")
class MigrateInstance(Operation[Place | None, Migration], kw_only=True):
    """Move a running instance to another node; it goes on running."""

    instance_name: InstanceArgument
    target_node: TargetNodeOption = None
    iallocator: AllocatorOption = None
    cleanup: CleanupOption = False
    allow_failover: Annotated[
        bool,
        option("--allow-failover", help="fail over what does not run", syntax=Syntax.FLAG),
    ] = False
    mode: MigrationModeOption = None
    live: LiveOption = None

    def locks(self, config: Config, place: Place | None) -> Wanted:
        instance = config.instance(self.instance_name)
        return locks_to_move(config, instance, place, cleanup=self.cleanup)

    async def choose(self, cluster: Cluster) -> Place | None:
        if self.cleanup:
            return None
        instance = cluster.config.instance(self.instance_name)
        return await choose_target(cluster, instance, self.target_node, self.iallocator)

    async def prepare(self, cluster: Cluster, place: Place | None) -> Migration:
        config = cluster.config
        instance = config.instance(self.instance_name)
        if place is None:
            return Migration(move=await plan_cleanup(cluster, instance))
        check_settled(cluster, instance)
        is_mirrored = instance.disk_template.traits.is_mirrored
        with another_if_stale(cluster, place):
            source, target = check_can_move(config, instance, place, anywhere=is_mirrored)
        check_online(source)
        found = await find_guest(cluster, instance, source)
        check_answers(found, instance, source)
        if self.allow_failover and not may_run(found):
            cluster.log(f"{instance.name} does not run, so it is failed over.")
            return Migration(failover=await self._failover().prepare(cluster, place))
        if found is None or found.state is not GuestState.RUNNING:
            state = found.state if found else "not there"
            raise Conflict(
                f"Instance {instance.name} does not run on {source.name} ({state}); use "
                f"“gnt-instance failover {instance.name}”.",
                instance=instance.name,
            )
        kind = kind_of(instance.disk_template)
        check_connected(config, config.nics_of(instance), target.uuid)
        guest = as_it_runs(present_guest(config, instance, target.uuid), found)
        check_unchanged(guest, found)
        with another_if_stale(cluster, place):
            await take_memory(cluster, target, guest.memory, instance)
        anew = None
        if is_mirrored and target.uuid not in config.nodes_of(instance):
            anew = await plan_new_secondary(cluster, instance, place, memory=guest.memory)
            guest = replace(guest, disks=anew.after.disks)
        else:
            await check_both_good(cluster, guest, source, f"move to {target.name}")
        await cluster.call(Instances, target).check_startable(guest=guest)
        live = self._is_live(guest)
        hypervisor = HYPERVISORS[guest.hypervisor]
        move = MigratePlan(
            instance=instance.uuid,
            source=source.ref,
            target=target.ref,
            target_host=target.secondary_ip or target.primary_ip,
            guest=guest,
            shells=(source.ref,),
            now=cluster.now(),
            anew=anew,
            live=live,
            post_copy=live and hypervisor.is_moved_by_post_copy(guest.parameters),
            share=kind.before_move(source.ref, target.ref),
            leave=kind.after_move(target.ref, [source.ref]),
        )
        return Migration(move=move)

    def _is_live(self, guest: GuestSpec) -> bool:
        if self.live is not None and self.mode is not None:
            raise InvalidRequest("Give --non-live or --migration-mode, not both.")
        if self.live is not None:
            return self.live
        if self.mode is not None:
            return self.mode is not MigrationMode.NON_LIVE
        return HYPERVISORS[guest.hypervisor].is_moved_live(guest.parameters)

    def intends(self, cluster: Cluster, place: Place | None) -> Iterable[Promise]:
        return room_for(cluster.config, self.instance_name, place) if place else ()

    def promises(self, plan: Migration) -> Iterable[Promise]:
        if plan.failover:
            return self._failover().promises(plan.failover)
        return _promises(plan.move) if plan.move else ()

    def recipe(self, cluster: Cluster, plan: Migration) -> Iterator[Step]:
        if plan.failover:
            return self._failover().recipe(cluster, plan.failover)
        return _steps(cluster, plan.move) if plan.move else iter(())

    def _failover(self) -> FailOverInstance:
        return FailOverInstance(instance_name=self.instance_name, target_node=self.target_node)


def _promises(plan: MigratePlan) -> Iterable[Promise]:
    if plan.anew:
        return [plan.anew.promise._replace(memory=plan.guest.memory)]
    is_move = plan.source != plan.target
    return [Promise(plan.instance, plan.target.uuid, plan.guest.memory)] if is_move else []


def _steps(cluster: Cluster, plan: MigratePlan) -> Iterator[Step]:
    if plan.source == plan.target:
        return settle(cluster, plan)
    if plan.anew:
        return _move_anywhere(cluster, plan, plan.anew)
    return _move(cluster, plan)


def _move_anywhere(cluster: Cluster, plan: MigratePlan, anew: ReplacePlan) -> Iterator[Step]:
    """Mirror to the target instead of the secondary node, and move there at once.

    The guest reads through the network, from the node that it has left, what its copy lacks yet.
    """
    yield from mirror_elsewhere(cluster, anew)
    yield record_pair(anew)
    yield from _move(cluster, plan)
    yield act(
        f"copy the disks of {plan.guest.name} from {anew.source} to {anew.target}",
        lambda: wait_for_sync(cluster, anew.after, anew.source),
    )
    yield note_good(anew)
    yield from drop_old(cluster, anew)


def _move(cluster: Cluster, plan: MigratePlan) -> Iterator[Step]:
    nodes = plan.source.uuid, plan.target.uuid
    # From here on whoever finds it gone from its node has to look for it on the other, too.
    yield record(
        f"record that {plan.guest.name} may be on {plan.target}",
        set_maybe_on(plan.instance, nodes, plan.now),
        undo=set_maybe_on(plan.instance, (), plan.now),
    )
    yield act(
        f"prepare {plan.target} to receive {plan.guest.name}",
        lambda: receive(cluster, plan),
        undo=lambda: clear_shell(cluster, plan),
    )
    # It is nowhere but on the target once the source says that it has left: having it run
    # there, and recording that, is part of the same step, and nothing before it can be undone
    # any more. The source refuses the undo of this step when the guest has left, and the
    # target that of the one before when it runs there.
    yield Step(
        f"move {plan.guest.name} from {plan.source} to {plan.target}",
        do=lambda: transfer(cluster, plan),
        undo=lambda: stop_transfer(cluster, plan),
        edit=set_primary(
            plan.instance, plan.target.uuid, plan.now, maybe_on=nodes if plan.post_copy else ()
        ),
        point_of_no_return=True,
    )
    if plan.post_copy:
        yield Step(
            f"see the rest of the memory of {plan.guest.name} come to {plan.target}",
            do=lambda: see_rest_come(cluster, plan.guest, source=plan.source, target=plan.target),
            edit=set_maybe_on(plan.instance, (), plan.now),
        )
    for node in plan.shells:
        yield saying(clear_away(cluster, plan, node), _moved(plan))
    for step in leave_disks(cluster, plan.guest, plan.target, plan.leave):
        yield saying(step, _moved(plan))


def _moved(plan: MigratePlan) -> str:
    name = plan.guest.name
    return (
        f"{name} runs on {plan.target}, and is recorded there; when {plan.source} answers, or is "
        f"marked offline, “gnt-instance migrate --cleanup {name}” does what is left."
    )
