"""Putting right what a migration left that was cut off."""

from collections.abc import Iterator

from common.model.instance import Instance
from common.model.node import Node, NodeRef
from common.noderpc.instances import Instances
from coordinator.disks.holding import Handover
from coordinator.disks.kind import DiskKind
from coordinator.disks.kinds import kind_of
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.instance.rest_of_memory import see_rest_come
from coordinator.operations.instance.transfer import MigratePlan, clear_away
from coordinator.operations.instance.whereabouts import find_whereabouts
from coordinator.operations.specs import present_guest
from coordinator.operations.step import Step, act, record
from coordinator.operations.steps.disks import leave_disks
from coordinator.operations.steps.edits import set_primary
from coordinator.state.config import Config


async def plan_cleanup(cluster: Cluster, instance: Instance) -> MigratePlan:
    found = await find_whereabouts(cluster, instance)
    node, kind = cluster.config.nodes[found.node], kind_of(instance.disk_template)
    elsewhere = _elsewhere(cluster.config, instance, node.ref)
    runs = found.runs or found.resume is not None
    return MigratePlan(
        instance=instance.uuid,
        source=node.ref,
        target=node.ref,
        target_host="",
        guest=present_guest(cluster.config, instance),
        leave=kind.after_move(node.ref, elsewhere) if runs else _let_go(kind, node, elsewhere),
        shells=found.shells,
        runs=found.runs,
        resume=found.resume,
        sends=found.sends,
        now=cluster.now(),
    )


def _let_go(kind: DiskKind, home: Node, elsewhere: list[NodeRef]) -> Handover:
    if not home.offline:
        return kind.after_stop([home.ref, *elsewhere])
    # It cannot let go of anything, and what ran there is going to be failed over.
    return Handover(
        do=tuple(each for node in elsewhere for each in kind.before_failover([node]).do)
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


def settle(cluster: Cluster, plan: MigratePlan) -> Iterator[Step]:
    """Have it be where it is, and nowhere else."""
    instances, guest = cluster.call(Instances, plan.source), plan.guest.id
    if move := plan.resume:
        yield act(
            f"have {plan.guest.name} run on {plan.source}, where it has come",
            lambda: instances.ensure_resumed(instance=guest, move=move),
        )
    if sends := plan.sends:
        yield _see_to_half(cluster, plan, sends)
    if plan.runs:  # and can be asked, now that it has what it may have waited for
        # A transfer that still goes on would move it to a shell that is cleared away below.
        yield act(
            f"have {plan.guest.name} stay on {plan.source}",
            lambda: instances.ensure_not_migrating(instance=guest),
        )
    for node in plan.shells:
        yield clear_away(cluster, plan, node)
    yield from leave_disks(cluster, plan.guest, plan.source, plan.leave)
    yield record(
        f"record that {plan.guest.name} is on {plan.source}",
        set_primary(plan.instance, plan.source.uuid, plan.now),
        point_of_no_return=True,
    )


def _see_to_half(cluster: Cluster, plan: MigratePlan, sends: NodeRef) -> Step:
    """See a part of its memory come to where it runs; what runs nowhere needs it no more."""
    if plan.runs or plan.resume:
        return act(
            f"see what {sends} has of the memory of {plan.guest.name} come to {plan.source}",
            lambda: see_rest_come(cluster, plan.guest, source=sends, target=plan.source),
        )
    half = cluster.call(Instances, sends)
    return act(
        f"end what {sends} has of the memory of {plan.guest.name}, the rest of which is lost",
        lambda: half.ensure_gone(instance=plan.guest.id),
    )
