"""Mirrored disks: whether both copies are there, and get what is written."""

from collections import Counter
from collections.abc import Iterable, Iterator

from common.model.instance import Instance
from common.model.node import Node
from common.model.template import DiskTemplate
from common.names import DiskId
from coordinator.checks.finding import Finding, NodeReport, Seen, Severity
from coordinator.disks.diagnosis import MirrorState, Side, diagnose
from coordinator.disks.drbd_options import refused_by_nine
from coordinator.disks.mirrors import generation_of
from coordinator.disks.parameters import disk_parameters

# That a node does not answer is told once, of the node.
_SEVERITIES = {
    MirrorState.SPLIT: Severity.ERROR,
    MirrorState.DEGRADED: Severity.ERROR,
    MirrorState.PARTED: Severity.ERROR,
    MirrorState.AT_REST: Severity.WARNING,
    MirrorState.COPYING: Severity.NOTICE,
}


def check_modules(seen: Seen) -> Iterator[Finding]:
    """Name nodes that cannot mirror disks, and those whose DRBD is of another version."""
    templates = map(DiskTemplate, seen.config.cluster.enabled_disk_templates)
    mirrored = [each for each in templates if each.traits.is_mirrored]
    if not mirrored:
        return
    there = [(node, report.facts) for node, report in seen.answered() if node.vm_capable]
    versions = Counter(facts.drbd_version for _, facts in there if facts.drbd_version)
    usual = max(versions, key=lambda each: (versions[each], each), default="")
    for node, facts in there:
        if facts.unmirrored:
            code = "ENODEDRBDHELPER" if facts.drbd_helper else "ENODEDRBD"
            message = f"cannot mirror disks: {facts.unmirrored}"
            yield Finding(code, "node", node.name, message)
        if facts.drbd_version and facts.drbd_version != usual:
            message = f"has DRBD {facts.drbd_version}, most nodes of its group have {usual}"
            if generation_of(facts.drbd_version) != generation_of(usual):
                message += "; what is mirrored between both goes on, and no new disk will be"
            yield Finding("ENODEDRBDVERSION", "node", node.name, message, Severity.WARNING)
        if generation_of(facts.drbd_version) == "9":
            yield from _check_options(seen, node, facts.drbd_version, mirrored)


def _check_options(
    seen: Seen, node: Node, version: str, templates: Iterable[DiskTemplate]
) -> Iterator[Finding]:
    """Name options of the operator's with which a node with DRBD 9 attaches no disk."""
    group = seen.config.groups[node.group]
    for template in templates:
        if refused := refused_by_nine(disk_parameters(seen.config, group, template)):
            message = (
                f"cannot mirror disks: DRBD {version} does not know {' or '.join(refused)}; take "
                f"it out of the disk parameters of group {group.name}, or of the cluster"
            )
            yield Finding("ENODEDRBD", "node", node.name, message)


def check_mirrors(seen: Seen) -> Iterator[Finding]:
    """Name mirrored disks that have one good copy only, and say what makes another one."""
    for instance in seen.config.made_instances:
        if instance.disk_template.traits.is_mirrored and seen.concerns(instance.primary_node):
            yield from _check(seen, instance)


def check_devices(seen: Seen) -> Iterator[Finding]:
    """Name devices of disks that are not their node's, and those that have the number of one."""
    for node, report in seen.answered():
        wanted = _devices(seen, node)
        numbers = {minor: disk for disk, minor in wanted.items()}
        for device in report.devices:
            path = f"/dev/drbd{device.minor}"
            if device.disk is not None and wanted.get(device.disk) != device.minor:
                message = (
                    f"{path} ({device.resource}) belongs to no disk that is here; if nothing uses "
                    f"it, “gnt-node remove-leftovers {node.name}” takes it away"
                )
                yield Finding("ENODEDRBD", "node", node.name, message)
            elif device.disk is None and device.minor in numbers:
                message = (
                    f"{path} is that of {device.resource}, which is none of ours; the disk "
                    f"{numbers[device.minor]} has that number here"
                )
                yield Finding("ENODEDRBD", "node", node.name, message)


def _devices(seen: Seen, node: Node) -> dict[DiskId, int]:
    """Return the numbers of the devices that mirrored disks may have on a node."""
    return {
        disk.uuid: disk.backing.minors[node.uuid]
        for disk in seen.config.disks.values()
        if node.uuid in disk.backing.minors
    }


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
