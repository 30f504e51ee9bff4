"""An instance: a virtual machine."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from common.model.disk import Disk
from common.model.entity import Entity
from common.model.stored import Part
from common.model.template import DiskTemplate
from common.names import DiskId, InstanceId, InstanceName, NicId, NodeId


class AdminState(StrEnum):
    """What the operator wants of an instance."""

    UP = "up"
    DOWN = "down"
    OFFLINE = "offline"


class StateSource(StrEnum):
    """Whose wish the state is that is wanted of an instance."""

    ADMIN = "admin"  # an operator's
    USER = "user"  # of whoever uses it, and has turned it off


class Reservation(Part, kw_only=True):
    """That an instance is not made yet: its room is kept, and no node knows of it.

    Attributes:
        expires_at: when it goes by itself, in seconds since 1970; 0: never.
        has_template: whether somebody has said how its disks are kept; until then it has none.
    """

    expires_at: float = 0.0
    has_template: bool = True


class Instance(Entity, kw_only=True):
    uuid: InstanceId
    name: InstanceName
    primary_node: NodeId
    admin_state: AdminState = AdminState.DOWN
    admin_state_source: StateSource = StateSource.ADMIN
    hypervisor: str
    disk_template: DiskTemplate
    os: str = ""
    disks: tuple[DiskId, ...] = ()
    nics: tuple[NicId, ...] = ()
    network_port: int = 0  # TCP, of its display; 0: none is kept for it
    disks_active: bool = False  # the operator wants them attached though it does not run
    hvparams: dict[str, Any] = {}
    beparams: dict[str, Any] = {}
    osparams: dict[str, Any] = {}
    # The nodes on which it may be while a migration is under way, or since one was cut off;
    # empty when it can only be on its primary node.
    maybe_on: tuple[NodeId, ...] = ()
    reservation: Reservation | None = None  # of one that is not made yet

    @property
    def forthcoming(self) -> bool:
        """Tell whether it is only reserved, its disks with it: nothing of it is on any node."""
        return self.reservation is not None

    @property
    def is_named(self) -> bool:
        """Tell whether it has a name; one that is reserved is called by its UUID until then."""
        return str(self.name) != str(self.uuid)

    @property
    def takes_memory(self) -> bool:
        """Tell whether others have to leave it memory where it is, or is going to be."""
        return self.forthcoming or self.admin_state is AdminState.UP

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
