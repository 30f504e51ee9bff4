"""An instance: a virtual machine."""

from enum import StrEnum
from typing import Any

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
    hvparams: dict[str, Any] = {}
    beparams: dict[str, Any] = {}
    osparams: dict[str, Any] = {}
    # The nodes on which it may be while a migration is under way, or since one was cut off;
    # empty when it can only be on its primary node.
    maybe_on: tuple[NodeId, ...] = ()
