"""Scripts of the operator's that look at the cluster when it is verified."""

from common.names import NodeName
from coordinator.checks.finding import Finding


def of_hook(node: NodeName, said: str) -> Finding:
    """Return what a script that has failed on a node stands for; ``said`` names it."""
    return Finding("ENODEHOOKS", "node", node, said)
