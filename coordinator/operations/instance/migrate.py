"""Move a running instance without stopping it."""

from collections.abc import Iterable, Iterator
from typing import Annotated

from msgspec.structs import replace

from common.errors import Conflict
from common.model.hypervisors import HYPERVISORS
from common.model.instance import Instance
from common.model.node import NodeRef
from common.noderpc.instances import GuestReport, GuestSpec, GuestState, Instances
from coordinator.disks.kinds import kind_of
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import AllocatorOption, InstanceArgument, TargetNodeOption
from coordinator.operations.instance.moving import check_can_move, choose_target, room_for
from coordinator.operations.instance.place import Place, another_if_stale
from coordinator.operations.instance.second_copy import check_both_good
from coordinator.operations.instance.transfer import (
    MigratePlan,
    clear_shell,
    receive,
    stop_transfer,
    transfer,
)
from coordinator.operations.instance.whereabouts import check_settled, find_whereabouts
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, hidden, option
from coordinator.operations.placement.fit import take_memory
from coordinator.operations.placement.promises import Promise
from coordinator.operations.specs import present_guest
from coordinator.operations.step import Step, act, record
from coordinator.operations.steps.checks import (
    check_answers,
    check_online,
    find_guest,
)
from coordinator.operations.steps.disks import leave_disks
from coordinator.operations.steps.edits import set_maybe_on, set_primary
from coordinator.state.config import Config


@operation("OP_INSTANCE_MIGRATE")
class MigrateInstance(Operation[Place | None, MigratePlan], kw_only=True):
    """Move a running instance to another node; it goes on running."""

    instance_name: InstanceArgument
    target_node: TargetNodeOption = None
    iallocator: AllocatorOption = None
    cleanup: Annotated[
        bool,
        option(
            "--cleanup",
            help="put right what a migration left that was cut off: record where it runs, and "
            "clear it away from other nodes",
            syntax=Syntax.FLAG,
        ),
    ] = False
    mode: Annotated[str | None, hidden("only “live”")] = None
    live: Annotated[bool | None, hidden("Ganeti's old name of mode")] = None

    def locks(self, config: Config, place: Place | None) -> Wanted:
        instance = config.instance(self.instance_name)
        target = [place.node.uuid] if place else []
        nodes = config.nodes if self.cleanup else [*config.nodes_of(instance), *target]
        return wanted(instance=instance.name, nodes=nodes, room=target)

    async def choose(self, cluster: Cluster) -> Place | None:
        if self.cleanup:
            return None
        instance = cluster.config.instance(self.instance_name)
        return await choose_target(cluster, instance, self.target_node, self.iallocator)

    async def prepare(self, cluster: Cluster, place: Place | None) -> MigratePlan:
        config = cluster.config
        instance = config.instance(self.instance_name)
        if place is None:
            return await _plan_cleanup(cluster, instance)
        check_settled(cluster, instance)
        with another_if_stale(cluster, place):
            source, target = check_can_move(config, instance, place)
        check_online(source)
        if self.mode not in (None, "live") or self.live is False:
            raise Conflict("Only live migration is possible; “gnt-instance failover” stops it.")
        found = await find_guest(cluster, instance, source)
        check_answers(found, instance, source)
        if found is None or found.state is not GuestState.RUNNING:
            state = found.state if found else "not there"
            raise Conflict(
                f"Instance {instance.name} does not run on {source.name} ({state}); use "
                f"“gnt-instance failover {instance.name}”.",
                instance=instance.name,
            )
        kind = kind_of(instance.disk_template)
        guest = _as_it_runs(present_guest(config, instance), found)
        _check_unchanged(guest, found)
        await check_both_good(cluster, guest, source, f"move to {target.name}")
        with another_if_stale(cluster, place):
            await take_memory(cluster, target, guest.memory, instance)
        await cluster.call(Instances, target).check_startable(guest=guest)
        return MigratePlan(
            instance=instance.uuid,
            source=source.ref,
            target=target.ref,
            target_host=target.secondary_ip or target.primary_ip,
            guest=guest,
            shells=(source.ref,),
            now=cluster.now(),
            share=kind.before_move(source.ref, target.ref),
            leave=kind.after_move(target.ref, [source.ref]),
        )

    def intends(self, cluster: Cluster, place: Place | None) -> Iterable[Promise]:
        return room_for(cluster.config, self.instance_name, place) if place else ()

    def promises(self, plan: MigratePlan) -> Iterable[Promise]:
        is_move = plan.source != plan.target
        return [Promise(plan.instance, plan.target.uuid, plan.guest.memory)] if is_move else []

    def recipe(self, cluster: Cluster, plan: MigratePlan) -> Iterator[Step]:
        yield from _settle(cluster, plan) if plan.source == plan.target else _move(cluster, plan)


async def _plan_cleanup(cluster: Cluster, instance: Instance) -> MigratePlan:
    found = await find_whereabouts(cluster, instance)
    node, kind = cluster.config.nodes[found.node], kind_of(instance.disk_template)
    runs = found.runs or found.resume is not None
    elsewhere = _elsewhere(cluster.config, instance, node.ref)
    return MigratePlan(
        instance=instance.uuid,
        source=node.ref,
        target=node.ref,
        target_host="",
        guest=present_guest(cluster.config, instance),
        leave=(
            kind.after_move(node.ref, elsewhere)
            if runs
            else kind.after_stop([node.ref, *elsewhere])
        ),
        shells=found.shells,
        runs=found.runs,
        resume=found.resume,
        now=cluster.now(),
    )


def _elsewhere(config: Config, instance: Instance, home: NodeRef) -> list[NodeRef]:
    """Return the nodes that may have its disks still.

    A move may have failed after its point of no return; nothing tells then where it came from.
    Mirrored disks can only be on the two nodes that have them.
    """
    holders = config.nodes_of(instance)
    nodes = (
        node
        for node in config.sorted_nodes()
        if node.vm_capable
        and not node.offline
        and (node.uuid in holders or not instance.disk_template.traits.is_mirrored)
    )
    return [node.ref for node in nodes if node.uuid != home.uuid]


def _settle(cluster: Cluster, plan: MigratePlan) -> Iterator[Step]:
    """Have it be where it is, and nowhere else."""
    instances, guest = cluster.call(Instances, plan.source), plan.guest.id
    move = plan.resume
    if plan.runs:
        # A transfer that still goes on would move it to a shell that is cleared away below.
        yield act(
            f"have {plan.guest.name} stay on {plan.source}",
            lambda: instances.ensure_not_migrating(instance=guest),
        )
    elif move is not None:
        yield act(
            f"have {plan.guest.name} run on {plan.source}, where it has come",
            lambda: instances.ensure_resumed(instance=guest, move=move),
        )
    for node in plan.shells:
        yield _clear(cluster, plan, node)
    yield from leave_disks(cluster, plan.guest, plan.source, plan.leave)
    yield record(
        f"record that {plan.guest.name} is on {plan.source}",
        set_primary(plan.instance, plan.source.uuid, plan.now),
    )


def _move(cluster: Cluster, plan: MigratePlan) -> Iterator[Step]:
    # From here on whoever finds it gone from its node has to look for it on the other, too.
    yield record(
        f"record that {plan.guest.name} may be on {plan.target}",
        set_maybe_on(plan.instance, (plan.source.uuid, plan.target.uuid), plan.now),
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
        edit=set_primary(plan.instance, plan.target.uuid, plan.now),
        point_of_no_return=True,
    )
    for node in plan.shells:
        yield _clear(cluster, plan, node)
    yield from leave_disks(cluster, plan.guest, plan.target, plan.leave)


def _clear(cluster: Cluster, plan: MigratePlan, node: NodeRef) -> Step:
    instances = cluster.call(Instances, node)
    return act(
        f"clear {plan.guest.name} away from {node}",
        lambda: instances.ensure_no_shell(instance=plan.guest.id),
    )


def _check_unchanged(guest: GuestSpec, found: GuestReport) -> None:
    """Refuse a guest that was made otherwise than its target would be: its memory would not fit.

    Raises:
        Conflict: says what was changed since it was started.
    """
    if not found.memory:  # noded has lost its record of it
        return
    if guest.disks and found.disks is None:
        raise Conflict(
            f"Instance {guest.name} was started by an older version, which does not tell where in "
            f"its machine its disks are: reboot it with “gnt-instance reboot {guest.name}” first, "
            "or move it with “gnt-instance failover”.",
            instance=guest.name,
        )
    differs = {
        "memory": guest.memory != found.memory,
        "processors": guest.vcpus != found.vcpus,
        "nics": [nic.id for nic in guest.nics] != list(found.nics),
        "disks": {disk.id for disk in guest.disks} != (found.disks or {}).keys(),
    }
    if changed := [what for what, does in differs.items() if does]:
        raise Conflict(
            f"Instance {guest.name} was given other {' and '.join(changed)} since it was started, "
            f"and its target would make it like that: reboot it with “gnt-instance reboot "
            f"{guest.name}” first, or move it with “gnt-instance failover”.",
            instance=guest.name,
        )


def _as_it_runs(guest: GuestSpec, found: GuestReport) -> GuestSpec:
    """Have the target run it in the way the source does, whatever it would choose by itself."""
    names = HYPERVISORS[guest.hypervisor].pinned & found.pinned.keys()
    pinned = {name: found.pinned[name] for name in names}
    return replace(guest, parameters=guest.parameters | pinned, slots=found.disks or {})
