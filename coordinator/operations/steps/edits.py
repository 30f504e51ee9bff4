"""Edits of an instance's record that several operations make."""

from msgspec.structs import replace

from common.model.instance import AdminState, Instance
from common.names import InstanceId, NodeId
from coordinator.operations.step import Edit
from coordinator.state.rows import Put
from coordinator.state.state import State


def set_admin_state(uuid: InstanceId, admin_state: AdminState, now: float) -> Edit:
    """Record what the operator wants of an instance; its disks are attached while it runs."""

    def edit(state: State) -> list[Put]:
        instance = state.config.instances[uuid]
        changed = replace(instance, admin_state=admin_state, disks_active=False)
        return [Put(_changed(changed, now))]

    return edit


def set_disks_active(uuid: InstanceId, active: bool, now: float) -> Edit:
    """Record whether the disks of an instance are to be attached though it does not run."""

    def edit(state: State) -> list[Put]:
        instance = state.config.instances[uuid]
        return [Put(_changed(replace(instance, disks_active=active), now))]

    return edit


def set_primary(uuid: InstanceId, node: NodeId, now: float) -> Edit:
    """Record on which node an instance is, and that it is on no other."""

    def edit(state: State) -> list[Put]:
        instance = state.config.instances[uuid]
        there = replace(instance, primary_node=node, maybe_on=(), disks_active=False)
        return [Put(_changed(there, now))]

    return edit


def set_maybe_on(uuid: InstanceId, nodes: tuple[NodeId, ...], now: float) -> Edit:
    """Record on which nodes an instance may be; none if it is on its primary node only."""

    def edit(state: State) -> list[Put]:
        instance = state.config.instances[uuid]
        return [Put(_changed(replace(instance, maybe_on=nodes), now))]

    return edit


def _changed(instance: Instance, now: float) -> Instance:
    return replace(instance, mtime=now, serial_no=instance.serial_no + 1)
