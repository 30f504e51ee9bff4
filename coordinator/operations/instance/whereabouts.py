"""Where an instance's guest is, when a migration that was cut off has left that open."""

from collections.abc import Sequence
from typing import NamedTuple

from common.errors import Conflict, GntError, NodeFailure
from common.model.instance import Instance
from common.model.node import Node, NodeRef
from common.names import InstanceName, NodeId, TaskId
from common.noderpc.instances import GuestReport, GuestState, Instances, Rest
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.steps.checks import check_answers, check_has_disks, check_online


class Found(NamedTuple):
    """What a node has of an instance."""

    node: Node
    guest: GuestReport


class Whereabouts(NamedTuple):
    """``node`` is where it is, or belongs if it runs nowhere."""

    node: NodeId
    runs: bool
    resume: TaskId | None  # the move by which it came to ``node``, where it has to be told to run
    shells: tuple[NodeRef, ...]  # nodes on which something is left that will not run
    sends: NodeRef | None = None  # the one of them that has a part of its memory


async def find_whereabouts(cluster: Cluster, instance: Instance) -> Whereabouts:
    """Look for an instance's guest on all nodes.

    Raises:
        NodeFailure: a node does not answer, and the guest may be there.
        Conflict: as ``decide``.
    """
    hosts = [n for n in cluster.config.sorted_nodes() if n.vm_capable and not n.offline]
    answers = await cluster.each(
        {node.uuid: cluster.call(Instances, node).guests() for node in hosts}
    )
    found: list[Found] = []
    for node in hosts:
        guests = answers[node.uuid]
        if isinstance(guests, GntError):
            raise NodeFailure(
                f"{instance.name} may be on {node.name}, which cannot be asked: {guests} If the "
                "node is dead, mark it offline first.",
                node=node.name,
            ) from guests
        found += [Found(node, guest) for guest in guests if guest.id == instance.uuid]
    return decide(instance, found)


def decide(instance: Instance, found: Sequence[Found]) -> Whereabouts:
    """Conclude where an instance is from what all nodes have of it.

    A guest that has come, as a whole, and was not told to run, goes on only if the node that it
    came from says that it has left by that very move. If that node has lost its power, nobody
    knows whether it had gone on there and written to its disks: what has come is then older than
    its disks, and worth nothing.

    Raises:
        Conflict: it runs on several nodes, or a node does not know whether it does, or whether it
            has come.
    """
    left = [each for each in found if each.guest.state is GuestState.MIGRATED]
    sends = next((node.ref for node, guest in left if guest.rest), None)
    running = [each for each in found if _runs(each.guest, lacks_memory=sends is not None)]
    if len(running) > 1:
        names = [node.name for node, _ in running]
        raise Conflict(
            f"{instance.name} runs on {' and '.join(names)} at once, and its disks are in danger: "
            "kill all but one of its processes by hand, now.",
            nodes=names,
        )
    for each in found:
        if each not in running:
            check_answers(each.guest, instance, each.node)
    came = None if running else _find_come(instance, found)
    where = running[0] if running else came
    return Whereabouts(
        node=where.node.uuid if where else instance.primary_node,
        runs=bool(running),
        resume=TaskId(came.guest.move) if came else None,
        shells=tuple(each.node.ref for each in found if each != where),
        sends=sends or _find_former_sender(instance, where, left),
    )


def _runs(guest: GuestReport, *, lacks_memory: bool) -> bool:
    """Tell whether a guest runs, if only as soon as it gets the memory that another node has.

    It can say nothing while it waits for that, but was told to run.
    """
    waits = lacks_memory and guest.state is GuestState.UNKNOWN and bool(guest.rest)
    return guest.state.is_alive or waits


def _find_come(instance: Instance, found: Sequence[Found]) -> Found | None:
    """Return where it has come, as a whole and for good, and waits to be told to run.

    Raises:
        Conflict: it has left for a node that does not say so.
    """
    left = {guest.move for _, guest in found if guest.state is GuestState.MIGRATED} - {""}
    waits = (each for each in found if each.guest.state is GuestState.INCOMING)
    sent = [each for each in waits if each.guest.move in left]
    came = next((each for each in sent if each.guest.arrived), None)
    if sent and not came:
        node = sent[0].node.name
        raise Conflict(
            f"{instance.name} has left for {node}, whose process does not say that it has come: it "
            "may go on there. Try again in a while, or give it up with “gnt-instance shutdown "
            f"--force {instance.name}”.",
            instance=instance.name,
            node=node,
        )
    return came


def _find_former_sender(
    instance: Instance, where: Found | None, left: Sequence[Found]
) -> NodeRef | None:
    """Return the node that says no more that it has a part of the memory, where that is open.

    Where the guest runs it is told late that the other node is dead.

    Raises:
        Conflict: it lacks a part, which no node has.
    """
    if where is None or not where.guest.rest:
        return None
    if where.guest.rest is Rest.CUT or not left:
        raise lost(instance.name, "another node", where.node.name)
    return left[0].node.ref  # in its last moment, or ended: which of them shows there soon


def lost(instance: InstanceName, source: str, target: str) -> Conflict:
    """Say that a guest that has moved by post-copy lacks what is nowhere any more."""
    return Conflict(
        f"{instance} lacks a part of its memory on {target}, which was on {source} and is lost: it "
        f"cannot go on. “gnt-instance shutdown --force {instance}” ends it, and it can be started "
        "anew.",
        instance=instance,
    )


def check_settled(cluster: Cluster, instance: Instance) -> None:
    """Refuse what can only be done to an instance of which it is known where it is.

    Raises:
        Conflict: names the nodes and the way out.
    """
    if instance.maybe_on:
        names = named(cluster, instance.maybe_on)
        raise Conflict(
            f"Instance {instance.name} may be on {' or '.join(names)}, since a migration that was "
            f"cut off; “gnt-instance migrate --cleanup {instance.name}” settles that first.",
            instance=instance.name,
            nodes=names,
        )


def settled_home(cluster: Cluster, instance: Instance) -> Node:
    """Return the node on which an instance's disks can be attached and detached.

    Raises:
        Conflict: it has none, it is not known where it is, or its node is marked offline.
    """
    check_has_disks(instance)
    check_settled(cluster, instance)
    node = cluster.config.nodes[instance.primary_node]
    check_online(node)
    return node


def others(cluster: Cluster, instance: Instance) -> tuple[NodeRef, ...]:
    """Return the nodes on which it may be, but its own and those marked offline."""
    nodes = cluster.config.nodes
    return tuple(
        nodes[uuid].ref
        for uuid in instance.maybe_on
        if uuid in nodes and uuid != instance.primary_node and not nodes[uuid].offline
    )


def named(cluster: Cluster, nodes: tuple[NodeId, ...]) -> list[str]:
    """Return the names of nodes; of those that have been removed, their UUIDs."""
    config = cluster.config
    return [config.nodes[uuid].name if uuid in config.nodes else uuid for uuid in nodes]
