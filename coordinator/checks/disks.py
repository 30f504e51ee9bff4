"""Disks: whether all are there, and no others."""

from collections.abc import Iterator

from coordinator.checks.finding import Finding, Seen
from coordinator.state.config import Config


def check_missing(seen: Seen) -> Iterator[Finding]:
    """Name disks that are not where they should be."""
    files = {node.uuid: set(report.disk_files) for node, report in seen.answered()}
    for instance in seen.config.sorted_instances():
        if instance.primary_node not in files:
            continue
        for index, disk in enumerate(seen.config.disks_of(instance)):
            if disk.backing.path not in files[instance.primary_node]:
                node = seen.config.nodes[instance.primary_node].name
                message = f"disk {index} ({disk.backing.path}) is missing on {node}"
                yield Finding("EINSTANCEMISSINGDISK", "instance", instance.name, message)


def check_left_over(seen: Seen) -> Iterator[Finding]:
    """Name disk files that belong to no instance; a shared one only once."""
    known = _paths(seen.config)
    told: set[str] = set()
    shared = seen.config.cluster.shared_file_storage_dir
    for node, report in seen.answered():
        for path in report.disk_files:
            if path in known or path in told:
                continue
            if shared and path.startswith(f"{shared}/"):
                told.add(path)
            message = f"the file {path} belongs to no instance"
            yield Finding("ENODEORPHANLV", "node", node.name, message)


def _paths(config: Config) -> set[str]:
    return {disk.backing.path for disk in config.disks.values()}
