"""What an operator does about a disk that is not where it should be."""

from common.model.instance import Instance
from common.model.node import Node
from coordinator.state.config import Config


def remedy(config: Config, instance: Instance, node: Node) -> str:
    """Return which command makes a disk of ``instance`` that is missing on ``node``.

    What a good copy is elsewhere is copied; what is gone is made anew, and is empty.
    """
    if not instance.disk_template.traits.is_mirrored:
        return f"“gnt-instance recreate-disks {instance.name}” makes it anew, empty"
    at_home = config.nodes_of(instance)[0] == node.uuid
    side = "--on-primary" if at_home else "--on-secondary"
    return f"“gnt-instance replace-disks {side} {instance.name}” makes it of the other copy"
