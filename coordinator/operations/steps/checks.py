"""Checks that several operations make before they change anything."""

from collections.abc import Sequence

from common.errors import Conflict, GntError
from common.model.instance import AdminState, Instance
from common.model.node import Node
from common.names import InstanceName
from common.noderpc.instances import GuestReport, GuestState, Instances
from coordinator.operations.cluster_view import Cluster


def check_online(node: Node) -> None:
    """Refuse a node that is marked offline."""
    if node.offline:
        raise Conflict(
            f"Node {node.name} is marked offline; bring it back with “gnt-node modify "
            f"--offline=no {node.name}”.",
            node=node.name,
        )


def check_takes_instances(node: Node) -> None:
    """Refuse a node that takes no further instances."""
    check_online(node)
    if node.drained:
        raise Conflict(f"Node {node.name} is drained and takes no instances.", node=node.name)
    if not node.vm_capable:
        raise Conflict(f"Node {node.name} is not for instances (vm_capable=no).", node=node.name)


def warn_of_groups(cluster: Cluster, name: InstanceName, nodes: Sequence[Node]) -> None:
    """Tell whoever watches that an instance is going to be on nodes of two groups, as in Ganeti."""
    home, *others = nodes
    group = cluster.config.groups[home.group].name
    for other in others:
        if other.group != home.group:
            cluster.log(
                f"{name} is going to be on nodes of two groups, {home.name} in {group} and "
                f"{other.name} in {cluster.config.groups[other.group].name}: its disks get the "
                f"parameters of {group}, and allocators keep within one group."
            )


def check_may_start(instance: Instance) -> None:
    """Refuse to start an instance that is marked offline."""
    if instance.admin_state is AdminState.OFFLINE:
        raise Conflict(
            f"Instance {instance.name} is marked offline; “gnt-instance modify --online "
            f"{instance.name}” lets it be started.",
            instance=instance.name,
        )


def check_has_disks(instance: Instance) -> None:
    """Refuse what is done to disks where there are none."""
    if not instance.disks:
        raise Conflict(f"Instance {instance.name} has no disks.", instance=instance.name)


async def find_guest(cluster: Cluster, instance: Instance, node: Node) -> GuestReport | None:
    """Return what ``node`` says of an instance's guest, or None if it has none."""
    guests = await cluster.call(Instances, node).guests()
    return next((guest for guest in guests if guest.id == instance.uuid), None)


def is_alive(guest: GuestReport | None) -> bool:
    """Tell whether a guest is there and is no shell."""
    return guest is not None and guest.state.is_alive


def may_run(guest: GuestReport | None) -> bool:
    """Tell whether a guest is there that runs or does not say."""
    return guest is not None and guest.state.may_run


def check_answers(guest: GuestReport | None, instance: Instance, node: Node) -> None:
    """Refuse a guest whose process is there and does not answer.

    Raises:
        Conflict: says for how long.
    """
    if guest is not None and guest.state is GuestState.UNKNOWN:
        raise Conflict(
            f"The process of {instance.name} on {node.name} has not answered for "
            f"{guest.silent_s:.0f} s, so whether it runs is not known. Wait until it answers, or "
            f"end it with “gnt-instance shutdown --force {instance.name}”.",
            node=node.name,
        )


async def check_not_elsewhere(cluster: Cluster, instance: Instance, *here: Node) -> None:
    """Refuse to start an instance that is, or may be, on another node.

    That is so after a migration whose end nobody saw. A node on which it may be (``maybe_on``)
    has to say that it has nothing of it; being marked offline, by an operator who knows, counts as
    that. Other nodes that do not answer are left out: no instance could be started any more if
    one of them had to be waited for.

    Raises:
        Conflict: names the node.
    """
    config = cluster.config
    others = [n for n in config.sorted_nodes() if n.vm_capable and not n.offline and n not in here]
    answers = await cluster.each(
        {node.uuid: cluster.call(Instances, node).guests() for node in others}
    )
    for node in others:
        guests, suspected = answers[node.uuid], node.uuid in instance.maybe_on
        if isinstance(guests, GntError):
            if suspected:
                raise Conflict(
                    f"Instance {instance.name} may be on {node.name}, which cannot be asked: "
                    f"{guests} If the node is dead, mark it offline.",
                    node=node.name,
                )
            continue
        found = next((guest for guest in guests if guest.id == instance.uuid), None)
        if found is not None and (found.state.may_run or suspected):
            what = "runs" if found.state.is_alive else f"has a process ({found.state})"
            raise Conflict(
                f"Instance {instance.name} {what} on {node.name}, where it should not be; "
                f"“gnt-instance migrate --cleanup {instance.name}” puts that right.",
                node=node.name,
            )
