"""Whether a node is right for disks: where storage is exclusive, not every one is."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from common.errors import Conflict, InvalidRequest
from common.model.disk import Disk
from common.model.node import Node
from common.model.spindles import spindles_for, standard_size
from common.model.template import DiskTemplate
from common.names import MiB
from common.noderpc.facts import Spindles
from coordinator.disks.exclusive import has_exclusive, is_exclusive
from coordinator.operations.placement.promises import PlannedInstance
from coordinator.operations.placement.room import Room
from coordinator.state.config import Config


class Unfit(NamedTuple):
    """Why a node is not for disks of some sort, in words a predicate.

    ``is_lack`` tells that it would be with more spindles.
    """

    why: str
    is_lack: bool = False

    def __str__(self) -> str:
        return self.why


def check_spindles(config: Config, node: Node, disks: Iterable[Disk]) -> None:
    """Refuse to give disks physical volumes for themselves where storage is not exclusive.

    Raises:
        InvalidRequest: says so.
    """
    if any(disk.spindles for disk in disks) and not is_exclusive(config, node.uuid):
        raise InvalidRequest(
            f"The storage of {node.name} is not exclusive, so its disks have no spindles for "
            "themselves: leave “spindles” out, or set exclusive_storage for its group."
        )


def check_anew(config: Config, node: Node, template: DiskTemplate, disks: Iterable[Disk]) -> None:
    """Refuse to make known disks anew where storage is exclusive, and they cannot keep to that.

    Raises:
        Conflict: says what they lack.
    """
    if not is_exclusive(config, node.uuid):
        return
    if not template.traits.is_apart:
        raise Conflict(f"Node {node.name} {_of_another_sort(template)}.", node=node.name)
    for number, disk in enumerate(disks):
        for unfit in _unsaid(number, disk):
            raise Conflict(f"Node {node.name} {unfit}.", node=node.name)


def find_unfit(room: Room, node: Node, planned: PlannedInstance) -> Unfit | None:
    """Return why a node is not for what is new of an instance's disks there; None if it is."""
    config, template = room.config, planned.instance.disk_template
    if not is_exclusive(config, node.uuid):
        return None
    if template.traits.is_apart:
        return next(_unfit(room, node, planned), None)
    # What is from before goes on, and verify tells of it.
    return None if _is_as_before(config, node, planned) else _of_another_sort(template)


def prefers_exclusive(config: Config, planned: PlannedInstance) -> bool:
    """Tell whether a node is looked for among those with exclusive storage alone."""
    return any(disk.spindles for disk in planned.disks) and has_exclusive(config)


def _is_as_before(config: Config, node: Node, planned: PlannedInstance) -> bool:
    """Tell whether an instance is on a node already with all of these disks, of its template."""
    present = config.instances.get(planned.instance.uuid)
    if present is None or node.uuid not in config.nodes_of(present):
        return False
    is_same = present.disk_template is planned.instance.disk_template
    return is_same and all(disk.uuid in config.disks for disk in planned.disks)


def _of_another_sort(template: DiskTemplate) -> Unfit:
    return Unfit(f"has exclusive storage, where disks are plain ones, not {template}")


def _unfit(room: Room, node: Node, planned: PlannedInstance) -> Iterator[Unfit]:
    for number, disk in enumerate(planned.disks):
        before = room.config.disks.get(disk.uuid)
        if before is None or node.uuid not in before.nodes:
            before = None
            yield from _unsaid(number, disk)
        for pool in disk.backing.pools:
            report = room.report_of(node, pool)
            if report is None or not report.usable:
                continue  # it is told what is wrong with the pool
            if report.spindles is None:
                yield Unfit(f"has exclusive storage, and does not tell what {pool} is made of")
            elif before is None or before.takes(pool) < disk.takes(pool):
                yield from _too_small(number, disk, disk.takes(pool), report.spindles)


def _unsaid(number: int, disk: Disk) -> Iterator[Unfit]:
    """Say what it lacks to be made there."""
    if disk.backing.thin_pool:
        yield Unfit("has exclusive storage, where nothing is in a thin pool, which all share")
    if not disk.spindles:
        yield Unfit(
            f"has exclusive storage, so say how many spindles disk {number} has for itself, "
            "as in --disk 0:size=10G,spindles=1, when it is made, imported, or made anew"
        )


def _too_small(number: int, disk: Disk, size: MiB, spindles: Spindles) -> Iterator[Unfit]:
    needed = spindles_for(size, spindles.smallest)
    if disk.spindles and needed and needed > disk.spindles:
        standard = standard_size(spindles.smallest)
        yield Unfit(
            f"has spindles of {standard} MiB, so disk {number} needs {needed} of them for its "
            f"{size} MiB, and has {disk.spindles}",
            is_lack=True,
        )
