"""The second copy of an instance's disks: whether a guest can have it, and whether it is good."""

from typing import NamedTuple

from common.errors import Conflict, GntError, NodeFailure, Unreachable
from common.model.instance import AdminState, Instance
from common.model.node import Node, NodeRef
from common.noderpc.disks import Disks
from common.noderpc.instances import GuestSpec
from common.noderpc.mirrors import CopyState, Link, MirrorReport, Mirrors
from coordinator.disks.mirrors import in_words, is_usable, is_whole, mirrored
from coordinator.operations.cluster_view import Cluster
from coordinator.state.config import Config


class Cast(NamedTuple):
    """Which of an instance's nodes take part in a start.

    Attributes:
        nodes: that do, the one where it will run first.
        lost: whose copies fall behind.
        may_part: whether it starts though its nodes do not reach each other.
    """

    nodes: tuple[NodeRef, ...]
    lost: tuple[NodeRef, ...] = ()
    may_part: bool = False


async def find_cast(
    cluster: Cluster,
    instance: Instance,
    home: Node,
    guest: GuestSpec,
    *,
    without: bool = False,
    has_copy: bool = False,
) -> Cast:
    """Find out which nodes can take part when an instance starts on ``home``.

    Args:
        cluster: as the job sees it.
        instance: which.
        home: where it is going to run.
        guest: with its disks.
        without: whether to go on without a second copy that cannot be had, though its node is
            not marked offline.
        has_copy: whether ``home`` has just been seen to have its copy, and need not be asked.

    Raises:
        Conflict: the copy on ``home`` is behind the other one.
        NodeFailure: the second copy cannot be had.
    """
    config = cluster.config
    if not instance.disk_template.traits.is_mirrored:
        return Cast((home.ref,))
    (second,) = (config.nodes[n] for n in config.nodes_of(instance) if n != home.uuid)
    if second.offline:
        return await _by_itself(cluster, home, second, guest, has_copy=has_copy)
    try:
        missing = await _missing(cluster, second, guest)
        trouble = f"disk {missing} is missing there" if missing else ""
    except GntError as error:
        trouble = error.message.rstrip(".")
    if not trouble:
        is_noted = all(second.uuid in disk.behind for disk in config.disks_of(instance))
        return Cast((home.ref, second.ref), may_part=without or is_noted)
    if not without:
        raise NodeFailure(
            f"The second copy of {instance.name} on {second.name} cannot be had: {trouble}. "
            f"“gnt-instance startup --force {instance.name}” starts it without; what it writes is "
            f"on {home.name} alone then, until the second copy is back.",
            node=second.name,
        )
    cluster.log(f"Going on without the second copy on {second.name}: {trouble}.")
    return await _by_itself(cluster, home, second, guest, has_copy=has_copy)


async def _by_itself(
    cluster: Cluster, home: Node, second: Node, guest: GuestSpec, *, has_copy: bool
) -> Cast:
    """Return that ``home`` has to do without the other copy, which falls behind.

    Raises:
        NodeFailure: it has no copy either, so that of the other node is not to be noted as old.
    """
    if not has_copy and (missing := await _missing(cluster, home, guest)):
        raise NodeFailure(
            f"Disk {missing} of {guest.name} is missing on {home.name}, and the other copy, on "
            f"{second.name}, cannot be had: bring {second.name} back.",
            node=home.name,
        )
    return Cast((home.ref,), (second.ref,))


async def _missing(cluster: Cluster, node: Node, guest: GuestSpec) -> str:
    """Return the numbers of the disks that a node has not got, in words; nothing if it has all.

    Whoever has their devices need not look for their volumes, which takes longer than all else.
    """
    reports = await cluster.call(Mirrors, node).status(disks=mirrored(guest))
    if len(reports) == len(guest.disks) and all(map(_has_volumes, reports)):
        return ""
    found = await cluster.call(Disks, node).find(disks=guest.disks)
    return ", ".join(str(index) for index, disk in enumerate(found) if disk is None)


def _has_volumes(report: MirrorReport | None) -> bool:
    return report is not None and report.own is not CopyState.NONE


def only(config: Config, instance: Instance, home: Node) -> Cast:
    """Return that nobody but ``home`` takes part."""
    others = (config.nodes[uuid].ref for uuid in config.nodes_of(instance) if uuid != home.uuid)
    return Cast((home.ref,), tuple(others))


def check_good_copy(cluster: Cluster, instance: Instance, cast: Cast) -> None:
    """Refuse to start an instance on an old copy of its disks alone.

    With the other node it can: what its own copy lacks it reads from there, while it is copied.

    Raises:
        Conflict: says where the good one is.
    """
    config, takes_part = cluster.config, {node.uuid for node in cast.nodes}
    for index, disk in enumerate(config.disks_of(instance)):
        if disk.behind and not takes_part - set(disk.behind):
            good = [config.nodes[uuid].name for uuid in disk.nodes if uuid not in disk.behind]
            raise Conflict(
                f"Disk {index} of {instance.name} on {cast.nodes[0]} is behind the copy on "
                f"{' and '.join(good)}. Bring that node back; or, if it is there, “gnt-instance "
                f"failover {instance.name}” has the instance run on it.",
                instance=instance.name,
            )


async def check_both_good(cluster: Cluster, guest: GuestSpec, home: Node, wish: str) -> None:
    """Refuse what takes two good copies of a guest's disks if they are not.

    Args:
        cluster: to ask ``home``.
        guest: with its disks.
        home: where they are used.
        wish: what cannot be done without, after “web1 cannot”.

    Raises:
        Conflict: says how they are.
    """
    disks = mirrored(guest)
    reports = await cluster.call(Mirrors, home).status(disks=disks) if disks else ()
    for index, report in enumerate(reports):
        if not is_whole(report):
            raise Conflict(
                f"{guest.name} cannot {wish}: its disk {index} on {home.name} "
                f"{in_words(report)}, and its other copy is {_peer(report)}. “gnt-"
                f"instance activate-disks --wait-for-sync {guest.name}” makes them equal.",
                instance=guest.name,
            )


def _peer(report: MirrorReport | None) -> str:
    return str(report.peer) if report else "unknown"


async def check_target_good(
    cluster: Cluster,
    instance: Instance,
    guest: GuestSpec,
    target: Node,
    *,
    source: Node | None,
    ignore: bool,
) -> bool:
    """Refuse to fail over to a copy of which it is not proven that it has all that was written.

    Args:
        cluster: as the job sees it.
        instance: which.
        guest: with its disks.
        target: where it is going to be.
        source: where it runs until then; None: nowhere.
        ignore: whether the operator takes such a copy all the same.

    Returns:
        Whether such a copy is taken, and has to be declared good.

    Raises:
        Conflict: says what is wrong with the copy.
    """
    disks = mirrored(guest)
    if not disks:
        return False
    problems: list[str] = []
    of = cluster.config.disks_of(instance)
    reports: tuple[MirrorReport | None, ...] = (None,) * len(disks)
    try:
        reports = await cluster.call(Mirrors, target).status(disks=disks)
    except Unreachable as error:
        raise NodeFailure(f"{target.name} cannot say how its copies are: {error}") from error
    # The target may not have noticed yet that it does not get what is written: the source has.
    written = await cluster.call(Mirrors, source).status(disks=disks) if source else ()
    for index, (disk, report) in enumerate(zip(of, reports, strict=True)):
        if target.uuid in disk.behind:
            problems.append(f"disk {index} is known to be behind")
        elif source or instance.admin_state is AdminState.UP:
            problem = _problem(report, must_be_connected=source is not None)
            problems += [f"disk {index} {problem}"] if problem else []
            if source and not problem and not is_whole(written[index]):
                problems.append(f"disk {index} on {source.name} {in_words(written[index])}")
        if not is_usable(report):
            raise Conflict(
                f"{instance.name} cannot run on {target.name}: its disk {index} there "
                f"{in_words(report)}, which is of no use.",
                instance=instance.name,
            )
    if problems and not ignore:
        raise Conflict(
            f"The copy of {instance.name} on {target.name} may lack what was written last: "
            f"{'; '.join(problems)}. Have the other node back if that can be; --ignore-"
            "consistency takes this copy as it is, and what it lacks is lost.",
            instance=instance.name,
        )
    if problems:
        cluster.log(f"Taking the copy on {target.name} as asked, though {'; '.join(problems)}.")
    return bool(problems)


def _problem(report: MirrorReport | None, *, must_be_connected: bool) -> str:
    """Say why a copy is not known to have everything; nothing if it is."""
    if report is None or report.split or report.own is not CopyState.UP_TO_DATE:
        return in_words(report)
    if must_be_connected and report.link is not Link.CONNECTED:
        return in_words(report)
    return ""
