"""An instance: a virtual machine."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from common.model.disk import Disk
from common.model.entity import Entity
from common.model.template import DiskTemplate
from common.names import DiskId, InstanceId, InstanceName, NicId, NodeId


class AdminState(StrEnum):
    """What the operator wants of an instance."""

    UP = "up"
    DOWN = "down"
    OFFLINE = "offline"


class Instance(Entity, kw_only=True):
    uuid: InstanceId
    name: InstanceName
    primary_node: NodeId
    admin_state: AdminState = AdminState.DOWN
    hypervisor: str
    disk_template: DiskTemplate
    os: str = ""
    disks: tuple[DiskId, ...] = ()
    nics: tuple[NicId, ...] = ()
    disks_active: bool = False  # the operator wants them attached though it does not run
    hvparams: dict[str, Any] = {}
    beparams: dict[str, Any] = {}
    osparams: dict[str, Any] = {}
    # The nodes on which it may be while a migration is under way, or since one was cut off;
    # empty when it can only be on its primary node.
    maybe_on: tuple[NodeId, ...] = ()

    @property
    def has_active_disks(self) -> bool:
        """Tell whether its disks are to be attached where it is."""
        return self.disks_active or self.admin_state is AdminState.UP


def nodes_of(instance: Instance, disks: Iterable[Disk]) -> tuple[NodeId, ...]:
    """Return the nodes that have something of an instance, its primary node first.

    The others are those that hold its disks, too: the secondary nodes. When it fails over, only
    the primary node is another one.
    """
    holders = (node for disk in disks for node in disk.nodes)
    return tuple(dict.fromkeys((instance.primary_node, *holders)))
