"""A node: a machine that runs noded."""

from enum import StrEnum
from typing import Any

from common.messages import Order
from common.model.entity import Entity
from common.model.stored import Part
from common.names import GroupId, InstanceId, KeyId, NodeId, NodeName


class Role(StrEnum):
    """What a node is for; the letters are those of the ``role`` field."""

    MASTER = "M"
    CANDIDATE = "C"
    REGULAR = "R"
    DRAINED = "D"
    OFFLINE = "O"


class NodeRef(Order):
    """A node as plans and titles of steps name it; what it is by then, the configuration says."""

    uuid: NodeId
    name: NodeName

    def __str__(self) -> str:
        return self.name


class Maintenance(Part, kw_only=True):
    """What is to be as before when the work on a node is done.

    Attributes:
        moved: the instances that ran there, or were there and down.
        was_candidate: whether it was a master candidate.
    """

    moved: tuple[InstanceId, ...] = ()
    was_candidate: bool = False


class Node(Entity, kw_only=True):
    uuid: NodeId
    name: NodeName
    primary_ip: str
    port: int = 1811
    secondary_ip: str = ""  # "": the primary one
    group: GroupId
    key: KeyId = KeyId("")  # of its certificate; "" if it joined under a version that kept none
    next_key: KeyId = KeyId("")  # counts as well, while the node gets another one
    master_candidate: bool = False
    announced: bool = False  # about to become a candidate: nodes take its orders already
    offline: bool = False
    drained: bool = False
    master_capable: bool = True
    vm_capable: bool = True
    ndparams: dict[str, Any] = {}
    powered: bool = True  # as far as is known from what switches it
    maintenance: Maintenance | None = None  # while it is drained for that

    @property
    def ref(self) -> NodeRef:
        return NodeRef(uuid=self.uuid, name=self.name)

    def is_known_by(self, key: KeyId) -> bool:
        """Tell whether who shows a certificate of this node's name for ``key`` is the node."""
        return not self.key or key in (self.key, self.next_key)
