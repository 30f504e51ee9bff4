"""What becomes of an instance's disks when some are added, changed, removed, attached, detached."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest
from common.messages import Order, from_builtins
from common.model.disk import Disk
from common.model.instance import Instance
from common.names import NodeId
from coordinator.disks.devices import Devices
from coordinator.disks.kind import DiskKind
from coordinator.disks.kinds import kind_of
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.devices import (
    MOST_DISKS,
    DiskEdit,
    DiskRequest,
    as_one_disk,
    check_names,
    without_nones,
)
from coordinator.operations.instance.adoption import check_made_anew
from coordinator.operations.instance.new_disk import new_disks
from coordinator.operations.instance.which import find_detached, find_device, place_for
from coordinator.operations.placement.numbers import free_devices
from coordinator.state.config import Config


class DiskAction(StrEnum):
    ADD = "add"
    MODIFY = "modify"
    REMOVE = "remove"
    ATTACH = "attach"  # one that belongs to no instance
    DETACH = "detach"  # it stays as it is, and belongs to none


class DiskChange(Order, array_like=True):
    """One ``--disk``, as Ganeti writes it: ``["add", -1, {"size": 1024}]``.

    ``disk`` is a number from 0, -1 for the last one, a name or a UUID; what comes is put before
    the disk of that number.
    """

    action: DiskAction
    disk: int | str
    values: dict[str, Any] = {}


class DiskChanges(Order, kw_only=True):
    """The disks of an instance before and after, and what belongs to no instance meanwhile.

    Attributes:
        present: its disks before.
        disks: its disks after.
        made: numbers, in ``disks``, of those that are made.
        removed: numbers, in ``present``, of those that are deleted.
        attached: those that come, as they were.
        detached: those that belong to nobody then, as they will be.
    """

    present: tuple[Disk, ...]
    disks: tuple[Disk, ...]
    made: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()
    attached: tuple[Disk, ...] = ()
    detached: tuple[Disk, ...] = ()

    @property
    def come(self) -> tuple[Disk, ...]:
        """Return the disks that it did not have."""
        had = {disk.uuid for disk in self.present}
        return tuple(disk for disk in self.disks if disk.uuid not in had)

    @property
    def gone(self) -> tuple[Disk, ...]:
        """Return the disks that it has no more, as they were."""
        has = {disk.uuid for disk in self.disks}
        return tuple(disk for disk in self.present if disk.uuid not in has)

    @property
    def before(self) -> tuple[Disk, ...]:
        """Return all disks that something becomes of, as they are."""
        return (*self.present, *self.attached)

    @property
    def after(self) -> tuple[Disk, ...]:
        """Return what is left of them, and what is new."""
        return (*self.disks, *self.detached)


def changed_disks(
    cluster: Cluster,
    instance: Instance,
    changes: Sequence[DiskChange],
    *,
    present: tuple[Disk, ...] | None = None,
    nodes: Sequence[NodeId] = (),
    devices: Devices | None = None,
) -> DiskChanges:
    """Return what becomes of an instance's disks by some changes, one after the other.

    Args:
        cluster: as the job sees it.
        instance: whose disks.
        changes: to be made.
        present: its disks; None: as in the configuration.
        nodes: on which new ones are to be; none: where it is.
        devices: which of their numbers are free; None: as the configuration and promises say.

    Raises:
        InvalidRequest: a change cannot be made.
        NotFound: there is no such disk.
        Conflict: a disk is elsewhere than the instance, or of another template.
    """
    kind, devices = kind_of(instance.disk_template), devices or free_devices(cluster)
    homes = nodes or cluster.config.nodes_of(instance)
    held = cluster.config.disks_of(instance) if present is None else present
    series = _Series(cluster.config, instance, held)
    for change in changes:
        match change.action:
            case DiskAction.ADD:
                request = _requested(kind, change.values)
                (made,) = new_disks(cluster, kind, instance.uuid, homes, [request], devices)
                series.put(change.disk, made)
            case DiskAction.ATTACH:
                series.attach(change)
            case DiskAction.MODIFY:
                series.modify(change)
            case DiskAction.REMOVE:
                series.remove(change)
            case DiskAction.DETACH:
                series.detach(change)
    return _checked(instance, series.outcome())


class _Series:
    """The disks of an instance while one change after the other is made to them."""

    def __init__(self, config: Config, instance: Instance, present: tuple[Disk, ...]) -> None:
        self._config, self._instance, self._present = config, instance, present
        self._disks = list(present)
        self._removed = list[int]()
        self._attached, self._detached = list[Disk](), list[Disk]()

    def put(self, where: int | str, disk: Disk) -> None:
        name = self._instance.name
        self._disks.insert(place_for(self._disks, where, kind="disk", name=name), disk)

    def attach(self, change: DiskChange) -> None:
        found = find_attached(self._config, change.values)
        _check_fits(self._config, self._instance, found)
        if found in self._attached:
            raise InvalidRequest(f"The disk {found.uuid} cannot be attached twice.")
        self._attached.append(found)
        self.put(change.disk, replace(found, template=None))

    def modify(self, change: DiskChange) -> None:
        where = self._find(change)
        if "size" in change.values:
            raise InvalidRequest(
                f"The size of disk {change.disk} is not changed here: “gnt-instance "
                f"grow-disk {self._instance.name} {change.disk} AMOUNT” makes it larger."
            )
        told = as_one_disk(change.values)
        edit = from_builtins(told, DiskEdit, what="what a disk is to be")
        self._disks[where] = edit.applied_to(self._disks[where])

    def remove(self, change: DiskChange) -> None:
        number, _ = self._take_out(change)
        self._removed.append(number)

    def detach(self, change: DiskChange) -> None:
        _, gone = self._take_out(change)
        self._detached.append(replace(gone, template=self._instance.disk_template))

    def outcome(self) -> DiskChanges:
        known = {disk.uuid for disk in (*self._present, *self._attached)}
        return DiskChanges(
            present=self._present,
            disks=tuple(self._disks),
            made=tuple(n for n, disk in enumerate(self._disks) if disk.uuid not in known),
            removed=tuple(self._removed),
            attached=tuple(self._attached),
            detached=tuple(self._detached),
        )

    def _take_out(self, change: DiskChange) -> tuple[int, Disk]:
        """Return what goes, with the number that it had before all changes."""
        where = self._find(change)
        if change.values:
            raise InvalidRequest(f"Disk {change.disk} goes; nothing about it can be set.")
        gone = self._disks.pop(where)
        had = [disk.uuid for disk in self._present]
        if gone.uuid not in had:
            raise InvalidRequest(
                f"Disk {change.disk} of {self._instance.name} would come and go at once."
            )
        return had.index(gone.uuid), gone

    def _find(self, change: DiskChange) -> int:
        return find_device(self._disks, change.disk, kind="disk", name=self._instance.name)


def all_in_directory(
    changes: Sequence[DiskChange], directory: str | None
) -> tuple[DiskChange, ...]:
    """Return the same changes, with the files of all disks that come in this directory.

    Raises:
        InvalidRequest: none comes.
    """
    if not directory:
        return tuple(changes)
    if all(change.action is not DiskAction.ADD for change in changes):
        raise InvalidRequest(
            "A directory is for new disks, as --disk add or -t makes them; files that are there "
            "stay where they are."
        )
    return tuple(
        replace(change, values={"directory": directory} | change.values)
        if change.action is DiskAction.ADD
        else change
        for change in changes
    )


def find_attached(config: Config, values: dict[str, Any]) -> Disk:
    """Return the disk that belongs to no instance yet, as ``attach`` names it.

    Raises:
        InvalidRequest: it is not said which, or several have the name.
        NotFound: there is none.
    """
    if values.keys() not in ({"uuid"}, {"name"}):
        raise InvalidRequest("Say which disk is attached, as in --disk attach:uuid=UUID.")
    (which,) = values.values()
    return find_detached(config, str(which))


def _requested(kind: DiskKind, values: dict[str, Any]) -> DiskRequest:
    wish = as_one_disk(without_nones(values))
    request = from_builtins(wish, DiskRequest, what="what a disk is to be")
    kind.check_wish(request)
    check_made_anew(kind, request)
    return request


def _check_fits(config: Config, instance: Instance, disk: Disk) -> None:
    """Refuse a disk that the instance cannot use where it is."""
    if disk.template is not instance.disk_template:
        raise Conflict(
            f"The disk {disk.uuid} is of the template {disk.template}, and those of "
            f"{instance.name} are of {instance.disk_template}."
        )
    if disk.nodes and set(disk.nodes) != set(config.nodes_of(instance)):
        there, here = (
            " and ".join(config.nodes[uuid].name for uuid in nodes)
            for nodes in (disk.nodes, config.nodes_of(instance))
        )
        raise Conflict(f"The disk {disk.uuid} is on {there}, and {instance.name} on {here}.")


def _checked(instance: Instance, changes: DiskChanges) -> DiskChanges:
    if len(changes.disks) > MOST_DISKS:
        raise InvalidRequest(
            f"An instance has at most {MOST_DISKS} disks; {instance.name} would have more."
        )
    if not changes.disks:
        raise InvalidRequest(f"Instance {instance.name} would be left without a disk.")
    kind_of(instance.disk_template).check_number(changes.disks)
    check_names(changes.disks, kind="disk", before=changes.present)
    return changes


def has_other_modes(changes: DiskChanges) -> bool:
    """Tell whether a disk that stays may be written to, or not, from now on."""
    modes = {disk.uuid: disk.mode for disk in changes.present}
    return any(modes.get(disk.uuid, disk.mode) is not disk.mode for disk in changes.disks)
