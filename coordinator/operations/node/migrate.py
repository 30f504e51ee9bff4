"""Migrate what runs on a node to other nodes."""

from typing import Any

from common.model.instance import AdminState, Instance
from common.names import NodeName
from coordinator.operations.base import operation
from coordinator.operations.fields import (
    AllocatorOption,
    LiveOption,
    MigrationModeOption,
    NodeArgument,
    TargetNodeOption,
)
from coordinator.operations.node.leave import LeavingNode


@operation("OP_NODE_MIGRATE")
class MigrateNode(LeavingNode, kw_only=True):
    """Migrate all instances of a node, mirrored ones to their secondary nodes.

    Those that are down are moved as well.
    """

    node_name: NodeArgument
    target_node: TargetNodeOption = None
    iallocator: AllocatorOption = None
    mode: MigrationModeOption = None
    live: LiveOption = None

    def left(self) -> NodeName:
        return self.node_name

    def order(self, instance: Instance) -> dict[str, Any]:
        is_mirrored = instance.disk_template.traits.is_mirrored
        order = {
            "instance_name": instance.name,
            "target_node": None if is_mirrored else self.target_node,
            "iallocator": None if is_mirrored else self.iallocator,
        }
        if instance.admin_state is not AdminState.UP:
            return order | {"OP_ID": "OP_INSTANCE_FAILOVER"}
        return order | {"OP_ID": "OP_INSTANCE_MIGRATE", "mode": self.mode, "live": self.live}
