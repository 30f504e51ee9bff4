"""Mirrored disks: whether both copies are there, and get what is written."""

from collections.abc import Iterator

from common.model.instance import Instance
from common.model.node import Node
from coordinator.checks.finding import Finding, NodeReport, Seen, Severity
from coordinator.disks.diagnosis import MirrorState, Side, diagnose

# That a node does not answer is told once, of the node.
_SEVERITIES = {
    MirrorState.SPLIT: Severity.ERROR,
    MirrorState.DEGRADED: Severity.ERROR,
    MirrorState.AT_REST: Severity.WARNING,
    MirrorState.COPYING: Severity.NOTICE,
}


def check_mirrors(seen: Seen) -> Iterator[Finding]:
    """Name mirrored disks that have one good copy only, and say what makes another one."""
    for instance in seen.config.sorted_instances():
        if instance.disk_template.traits.is_mirrored and seen.concerns(instance.primary_node):
            yield from _check(seen, instance)


def _check(seen: Seen, instance: Instance) -> Iterator[Finding]:
    config = seen.config
    home, second = (_side(seen, config.nodes[n]) for n in config.nodes_of(instance))
    for index, disk in enumerate(config.disks_of(instance)):
        found = diagnose(instance.name, disk, home, second)
        if found.text and found.state in _SEVERITIES:
            message = f"disk {index} {found.text}"
            severity = _SEVERITIES[found.state]
            yield Finding("EINSTANCEFAULTYDISK", "instance", instance.name, message, severity)


def _side(seen: Seen, node: Node) -> Side:
    report = seen.nodes.get(node.uuid)
    return Side(node, report.mirrors if isinstance(report, NodeReport) else None)
