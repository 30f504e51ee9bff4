"""The parameters of an instance's disks, as they are in force."""

from typing import Any

from common.messages import to_builtins
from common.model.disk_parameters import DISK_PARAMETERS
from common.model.group import Group
from common.model.parameters import settled
from common.model.template import DiskTemplate
from common.names import NodeId
from coordinator.state.config import Config


def disk_parameters(config: Config, group: Group | None, template: DiskTemplate) -> dict[str, Any]:
    """Return the filled parameters of a template in a group, or in none in particular.

    A stored value that does not fit counts as the default; ``gnt-cluster verify`` tells of it.
    """
    layers = (config.cluster.diskparams, group.diskparams if group else {})
    values = settled(DISK_PARAMETERS[template], *(layer.get(template, {}) for layer in layers))
    filled: dict[str, Any] = to_builtins(values)
    return filled


def group_of(config: Config, home: NodeId | None) -> Group | None:
    """Return the group that a node is in; None if there is none yet, or no node."""
    node = config.nodes.get(home) if home else None
    return config.groups.get(node.group) if node else None
