"""A node group: nodes among which instances move freely."""

from typing import Any

from common.model.allocation_policy import AllocationPolicy
from common.model.entity import Entity
from common.model.network import Connection
from common.model.policy import PolicyLayer
from common.names import GroupId, GroupName, NetworkId


class Group(Entity, kw_only=True):
    uuid: GroupId
    name: GroupName
    alloc_policy: AllocationPolicy = AllocationPolicy.PREFERRED
    ndparams: dict[str, Any] = {}
    diskparams: dict[str, dict[str, Any]] = {}  # by template, over the cluster's
    ipolicy: PolicyLayer | None = None  # over the cluster's
    networks: dict[NetworkId, Connection] = {}  # that its nodes are connected to
