"""Fail over what is on a node, which may be dead."""

from typing import Any

from common.model.instance import Instance
from common.names import NodeName
from coordinator.operations.base import operation
from coordinator.operations.fields import AllocatorOption, IgnoreConsistency, NodeArgument
from coordinator.operations.node.leave import LeavingNode


@operation("OP_NODE_FAILOVER")
class FailOverNode(LeavingNode, kw_only=True):
    """Fail over all instances of a node, mirrored ones to their secondary nodes."""

    node_name: NodeArgument
    iallocator: AllocatorOption = None
    ignore_consistency: IgnoreConsistency = False

    def left(self) -> NodeName:
        return self.node_name

    def order(self, instance: Instance) -> dict[str, Any]:
        is_mirrored = instance.disk_template.traits.is_mirrored
        return {
            "OP_ID": "OP_INSTANCE_FAILOVER",
            "instance_name": instance.name,
            "ignore_consistency": self.ignore_consistency,
            "iallocator": None if is_mirrored else self.iallocator,
        }
