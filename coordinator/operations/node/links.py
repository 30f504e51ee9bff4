"""Mirrored disks of a node that gets another address: their ends have to find each other anew.

One instance after the other: while the two nodes do not see each other, what a guest writes is on
one of them only. So both copies have to be equal before, the second one is noted as behind
meanwhile, and the next instance has its turn when they are equal again.
"""

from collections.abc import Iterator

from common.errors import Conflict, GntError
from common.messages import Order
from common.model.node import Node, NodeRef
from common.noderpc.disks import Access
from common.noderpc.instances import GuestSpec
from common.noderpc.mirrors import Mirrors
from coordinator.disks.holding import Hold, standby
from coordinator.disks.mirrors import Reports, in_words, is_whole
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.specs import present_guest
from coordinator.operations.step import Step, act, record
from coordinator.operations.steps.disks import hold
from coordinator.operations.steps.edits import note_copies
from coordinator.operations.steps.mirrors import fall_behind
from coordinator.operations.steps.syncing import wait_for_sync
from coordinator.state.rows import Put


class MirrorLink(Order, kw_only=True):
    """The mirrored disks of one instance that are attached.

    Attributes:
        home: its primary node.
        second: the node with the other copies.
        access: in which the primary node has them.
        before: with the addresses that they have.
        after: with those that they will have.
    """

    home: NodeRef
    second: NodeRef
    access: Access
    before: GuestSpec
    after: GuestSpec


async def find_links(cluster: Cluster, before: Node, after: Node) -> tuple[MirrorLink, ...]:
    """Return what has to be linked anew when a node changes; nothing of what is at rest.

    Raises:
        Conflict: copies are not equal, so that one of them alone would not do.
    """
    if _address(before) == _address(after) or before.offline or after.offline:
        return ()
    config, found = cluster.config, []
    changed = config.apply([Put(after)])
    for instance in config.made_instances:
        nodes = config.nodes_of(instance)
        if not instance.disk_template.traits.is_mirrored or before.uuid not in nodes:
            continue
        home, second = (config.nodes[uuid] for uuid in nodes)
        guest = present_guest(config, instance)
        if home.offline or second.offline:
            cluster.log(
                f"The copies of {instance.name} find each other when both nodes are back in "
                f"service, by “gnt-instance activate-disks {instance.name}”."
            )
            continue
        reports = await cluster.call(Mirrors, home).status(disks=guest.disks)
        if not any(reports):
            continue  # whoever attaches them next is told the new address
        for index, report in enumerate(reports):
            if not is_whole(report):
                raise Conflict(
                    f"{instance.name} cannot do without one of its copies while {before.name} gets "
                    f"another address: disk {index} on {home.name} {in_words(report)}. See what "
                    f"“gnt-instance info {instance.name}” tells of it, and have them become equal.",
                    instance=instance.name,
                )
        found.append(
            MirrorLink(
                home=home.ref,
                second=second.ref,
                access=_access(reports),
                before=guest,
                after=present_guest(changed, instance),
            )
        )
    return tuple(found)


def link_anew(cluster: Cluster, link: MirrorLink, now: float) -> Iterator[Step]:
    """Have both nodes of an instance find each other at the new address; undone, at the old one."""
    if link.access is not Access.STANDBY:
        yield from fall_behind(link.before, (link.second,), now)

    async def meet(guest: GuestSpec) -> None:
        await hold(cluster, guest, standby(link.second))
        await hold(cluster, guest, (Hold(node=link.home, access=link.access),))

    async def meet_anew() -> None:
        await meet(link.after)
        await wait_for_sync(cluster, link.after, link.home)

    async def meet_again() -> None:
        try:
            await meet(link.before)
        except GntError as error:  # the second copy is noted as behind, so nothing depends on it
            cluster.log(
                f"{link.home} and {link.second} do not mirror {link.before.name} just now: {error} "
                f"“gnt-instance activate-disks {link.before.name}” has them try again."
            )

    yield act(
        f"have {link.home} and {link.second} mirror {link.after.name} between their new addresses",
        meet_anew,
        undo=meet_again,
    )
    disks = tuple(disk.id for disk in link.after.disks)
    yield record(
        f"note that the copies of {link.after.name} are equal",
        note_copies(disks, now, good=(link.second.uuid,)),
    )


def _address(node: Node) -> str:
    return node.secondary_ip or node.primary_ip


def _access(reports: Reports) -> Access:
    is_used = any(report is not None and report.primary for report in reports)
    return Access.SOLE if is_used else Access.STANDBY
