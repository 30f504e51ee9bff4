"""Planning which copies of mirrored disks are replaced: what stays has to be good."""

from collections.abc import Iterable

from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest
from common.model.disk import Disk
from common.model.instance import Instance
from common.model.node import Node
from common.names import MiB
from common.noderpc.disks import Access, Disks
from common.noderpc.instances import GuestSpec
from common.noderpc.mirrors import CopyState, Link, MirrorReport, Mirrors
from coordinator.disks.drbd import again_on
from coordinator.disks.mirrors import in_words
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.instance.place import Place, another_if_stale
from coordinator.operations.instance.replacing import ReplacePlan
from coordinator.operations.placement.growth import (
    promise_of_secondary,
    take_space,
    take_space_beside,
)
from coordinator.operations.placement.numbers import free_devices
from coordinator.operations.specs import disk_spec, present_guest
from coordinator.operations.steps.checks import (
    check_online,
    check_takes_instances,
    warn_of_groups,
)
from coordinator.operations.steps.snapshots import check_no_snapshots


def check_mirrored(instance: Instance) -> None:
    """Refuse an instance whose disks have one copy only."""
    if not instance.disk_template.traits.is_mirrored:
        raise InvalidRequest(
            f"{instance.name} has {instance.disk_template} disks, of which there is one copy only; "
            "“gnt-instance recreate-disks” makes lost ones anew."
        )


async def plan_in_place(
    cluster: Cluster, instance: Instance, source: Node, target: Node, indices: tuple[int, ...]
) -> ReplacePlan:
    """Plan new copies on ``target`` beside the old ones; those on ``source`` stay.

    Raises:
        Conflict: these are not known to be good.
        NoCapacity: there is no space for both.
    """
    config = cluster.config
    home = config.nodes[instance.primary_node]
    guest = _with_disks(present_guest(config, instance), indices)
    disks = tuple(config.disks_of(instance)[index] for index in indices)
    check_no_snapshots(instance, disks, "replaced", on=target)
    access = await _access(cluster, guest, home)
    is_lost = await _is_lost(cluster, guest, target)
    # A guest whose own node has a good copy does without the other one, which is not there.
    needs_link = access is not None and not (is_lost and source.uuid == home.uuid)
    await _check_source(cluster, instance, guest, disks, source, needs_link=needs_link)
    await take_space_beside(cluster, instance, disks, target)
    return ReplacePlan(
        instance=instance,
        guest=guest,
        indices=indices,
        home=home.ref,
        access=access,
        source=source.ref,
        target=target.ref,
        is_lost=is_lost,
        after=guest,
        disks=disks,
        now=cluster.now(),
    )


async def plan_new_secondary(
    cluster: Cluster,
    instance: Instance,
    place: Place,
    *,
    early: bool = False,
    memory: MiB | None = None,
) -> ReplacePlan:
    """Plan copies on another node instead of the secondary one, and promise what they take.

    Args:
        cluster: as the job sees it.
        instance: which.
        place: the other node.
        early: whether old copies go before the new ones are up to date.
        memory: that the instance is going to take there, too, and is promised already.

    Raises:
        Conflict: the copies on the primary node are not known to be good.
        NoCapacity: there is no space for new ones.
    """
    config = cluster.config
    home, old = (config.nodes[uuid] for uuid in config.nodes_of(instance))
    check_online(home)
    guest, disks = present_guest(config, instance), config.disks_of(instance)
    check_no_snapshots(instance, disks, "replaced", on=old)
    access = await _access(cluster, guest, home)
    await _check_source(cluster, instance, guest, disks, home, needs_link=False)
    with another_if_stale(cluster, place):
        target = place.find(config)
        check_takes_instances(target)
        if target.uuid in (home.uuid, old.uuid):
            raise Conflict(f"{instance.name} has copies of its disks on {target.name} already.")
        await take_space(cluster, promise_of_secondary(instance, disks, target), [target])
    warn_of_groups(cluster, instance.name, (home, target))
    devices, nodes = free_devices(cluster), (home.uuid, target.uuid)
    made = tuple(again_on(disk, nodes, devices) for disk in disks)
    plan = ReplacePlan(
        instance=instance,
        guest=guest,
        indices=tuple(range(len(disks))),
        home=home.ref,
        access=access,
        source=home.ref,
        target=target.ref,
        old=old.ref,
        reaches_old=not old.offline,
        after=replace(guest, disks=tuple(disk_spec(config, instance, d) for d in made)),
        before=disks,
        disks=made,
        early=early,
        now=cluster.now(),
    )
    cluster.promise(plan.promise._replace(memory=memory or MiB(0)))
    return plan


async def find_faulty(
    cluster: Cluster, instance: Instance, home: Node, second: Node, indices: tuple[int, ...]
) -> tuple[Node, tuple[int, ...]]:
    """Return the node on which copies are faulty, and which; none if all are well.

    Raises:
        Conflict: on both.
    """
    guest = _with_disks(present_guest(cluster.config, instance), indices)
    faulty = []
    for node in (home, second):
        found = await cluster.call(Disks, node).find(disks=guest.disks)
        reports = await cluster.call(Mirrors, node).status(disks=guest.disks)
        pairs = zip(indices, found, reports, strict=True)
        if those := tuple(index for index, disk, report in pairs if _is_faulty(disk, report)):
            faulty.append((node, those))
    if len(faulty) > 1:
        raise Conflict(
            f"Copies of {instance.name} are faulty on {home.name} and on {second.name}: "
            "“gnt-instance info” shows which. Replace them one by one, with --disks.",
            instance=instance.name,
        )
    return faulty[0] if faulty else (second, ())


async def _is_lost(cluster: Cluster, guest: GuestSpec, target: Node) -> bool:
    """Tell whether a node has nothing of some disks: no volume that is whole, and no device."""
    found = await cluster.call(Disks, target).find(disks=guest.disks)
    reports = await cluster.call(Mirrors, target).status(disks=guest.disks)
    return not any(found) and not any(reports)


def _with_disks(guest: GuestSpec, indices: tuple[int, ...]) -> GuestSpec:
    return replace(guest, disks=tuple(guest.disks[index] for index in indices))


async def _access(cluster: Cluster, guest: GuestSpec, home: Node) -> Access | None:
    """Return how the primary node has the disks."""
    reports = await cluster.call(Mirrors, home).status(disks=guest.disks)
    if any(report and report.primary for report in reports):
        return Access.SOLE
    return Access.STANDBY if all(reports) else None


async def _check_source(
    cluster: Cluster,
    instance: Instance,
    guest: GuestSpec,
    disks: Iterable[Disk],
    source: Node,
    *,
    needs_link: bool,
) -> None:
    """Refuse to replace copies where the ones that stay are not known to be good.

    Raises:
        Conflict: says what is wrong with them.
    """
    reports = await cluster.call(Mirrors, source).status(disks=guest.disks)
    for disk, report in zip(disks, reports, strict=True):
        problem = "is known to be behind" if source.uuid in disk.behind else ""
        if report is not None and report.own is not CopyState.UP_TO_DATE:
            problem = in_words(report)
        if needs_link and (report is None or report.link is not Link.CONNECTED):
            problem = in_words(report)
        if problem:
            raise Conflict(
                f"The copies of {instance.name} on {source.name} would be the only ones, and disk "
                f"{instance.disks.index(disk.uuid)} there {problem}.",
                instance=instance.name,
            )


def _is_faulty(disk: object, report: MirrorReport | None) -> bool:
    return disk is None or (report is not None and report.own is CopyState.NONE)
