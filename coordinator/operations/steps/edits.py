"""Edits of an instance's record that several operations make."""

from collections.abc import Callable

from msgspec.structs import replace

from common.messages import Order
from common.model.disk import Disk
from common.model.instance import AdminState, Instance, StateSource
from common.names import DiskId, InstanceId, NodeId
from coordinator.operations.step import Edit
from coordinator.state.rows import Put
from coordinator.state.state import State


def set_admin_state(
    uuid: InstanceId,
    admin_state: AdminState,
    now: float,
    *,
    source: StateSource = StateSource.ADMIN,
) -> Edit:
    """Record what is wanted of an instance, and who wants it."""

    def edit(state: State) -> list[Put]:
        instance = state.config.instances[uuid]
        changed = replace(instance, admin_state=admin_state, admin_state_source=source)
        return [Put(_changed(changed, now))]

    return edit


def set_disks_active(uuid: InstanceId, now: float, *, active: bool) -> Edit:
    """Record whether the disks of an instance are to be attached though it does not run."""

    def edit(state: State) -> list[Put]:
        instance = state.config.instances[uuid]
        return [Put(_changed(replace(instance, disks_active=active), now))]

    return edit


def set_primary(
    uuid: InstanceId, node: NodeId, now: float, *, maybe_on: tuple[NodeId, ...] = ()
) -> Callable[[State], list[Put]]:
    """Record on which node an instance is, and that it is on no other, or may be."""

    def edit(state: State) -> list[Put]:
        instance = state.config.instances[uuid]
        there = replace(instance, primary_node=node, maybe_on=maybe_on, disks_active=False)
        return [Put(_changed(there, now))]

    return edit


def set_maybe_on(uuid: InstanceId, nodes: tuple[NodeId, ...], now: float) -> Edit:
    """Record on which nodes an instance may be; none if it is on its primary node only."""

    def edit(state: State) -> list[Put]:
        instance = state.config.instances[uuid]
        return [Put(_changed(replace(instance, maybe_on=nodes), now))]

    return edit


class SeenCopies(Order, kw_only=True):
    """What nodes have told of a disk that was as ``serial_no`` says."""

    disk: DiskId
    serial_no: int
    behind: tuple[NodeId, ...] = ()
    good: tuple[NodeId, ...] = ()


def note_seen(seen: tuple[SeenCopies, ...], now: float) -> Edit:
    """Record what was seen of copies, but of disks that were changed since."""

    def edit(state: State) -> list[Put]:
        changes = []
        for each in seen:
            disk = state.config.disks.get(each.disk)
            if disk is not None and disk.serial_no == each.serial_no:
                changes += note_copies((disk.uuid,), now, behind=each.behind, good=each.good)(state)
        return changes

    return edit


def note_copies(
    disks: tuple[DiskId, ...],
    now: float,
    *,
    behind: tuple[NodeId, ...] = (),
    good: tuple[NodeId, ...] = (),
) -> Callable[[State], list[Put]]:
    """Record whose copies of disks are behind, and whose are not."""

    def edit(state: State) -> list[Put]:
        changes = []
        for uuid in disks:
            disk = state.config.disks[uuid]
            noted = tuple(
                node
                for node in disk.nodes
                if node in behind or (node in disk.behind and node not in good)
            )
            if noted != disk.behind:
                serial_no = disk.serial_no + 1
                changes.append(Put(replace(disk, behind=noted, mtime=now, serial_no=serial_no)))
        return changes

    return edit


def put_disks(disks: tuple[Disk, ...], now: float) -> Callable[[State], list[Put]]:
    """Record where disks are from now on; what else changed meanwhile stays."""

    def edit(state: State) -> list[Put]:
        changes = []
        for disk in disks:
            present = state.config.disks[disk.uuid]
            there = replace(
                present, backing=disk.backing, nodes=disk.nodes, behind=disk.behind, mtime=now
            )
            changes.append(Put(replace(there, serial_no=present.serial_no + 1)))
        return changes

    return edit


def _changed(instance: Instance, now: float) -> Instance:
    return replace(instance, mtime=now, serial_no=instance.serial_no + 1)
