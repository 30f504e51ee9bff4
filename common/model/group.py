"""A node group: nodes among which instances move freely."""

from enum import StrEnum
from typing import Any

from common.model.entity import Entity
from common.model.policy import InstancePolicy
from common.names import GroupId, GroupName


class AllocationPolicy(StrEnum):
    """Whether new instances may go to a group."""

    PREFERRED = "preferred"
    LAST_RESORT = "last_resort"
    UNALLOCABLE = "unallocable"


class Group(Entity, kw_only=True):
    uuid: GroupId
    name: GroupName
    alloc_policy: AllocationPolicy = AllocationPolicy.PREFERRED
    ndparams: dict[str, Any] = {}
    ipolicy: InstancePolicy | None = None  # None: the cluster's
