"""Disks: whether all are there, and no others."""

from collections.abc import Iterator

from coordinator.checks.finding import Finding, Seen
from coordinator.disks.kinds import shared_pools
from coordinator.disks.missing import remedy
from coordinator.state.config import Config


def check_missing(seen: Seen) -> Iterator[Finding]:
    """Name disks that are not where they should be: on each node of their instance."""
    files = {
        node.uuid: {*report.disk_files, *(f"{each.group}/{each.name}" for each in report.volumes)}
        for node, report in seen.answered()
    }
    for instance in seen.config.made_instances:
        nodes = [uuid for uuid in seen.config.nodes_of(instance) if uuid in files]
        for index, disk in enumerate(seen.config.disks_of(instance)):
            for uuid in nodes:
                for path in disk.backing.paths:
                    if path not in files[uuid]:
                        node = seen.config.nodes[uuid]
                        message = (
                            f"disk {index} ({path}) is missing on {node.name}; "
                            f"{remedy(seen.config, instance, node)}"
                        )
                        yield Finding("EINSTANCEMISSINGDISK", "instance", instance.name, message)


def check_missing_snapshots(seen: Seen) -> Iterator[Finding]:
    """Name snapshots that are not where they should be: beside the disk that a guest uses."""
    there = {
        node.uuid: {*report.disk_files, *(f"{each.group}/{each.name}" for each in report.volumes)}
        for node, report in seen.answered()
    }
    for instance in seen.config.made_instances:
        for index, disk in enumerate(seen.config.disks_of(instance)):
            for each in disk.snapshots:
                holder = each.node or instance.primary_node
                if holder in there and not there[holder].issuperset(each.backing.paths):
                    node = seen.config.nodes[holder].name
                    message = (
                        f"the snapshot {each.name} of disk {index} is missing on {node}; "
                        f"“gnt-instance remove-snapshot {instance.name} {each.name}” forgets it"
                    )
                    yield Finding("EINSTANCEMISSINGDISK", "instance", instance.name, message)


def check_images(seen: Seen) -> Iterator[Finding]:
    """Name disks whose images are damaged."""
    for node, report in seen.answered():
        for instance in seen.config.instances_on(node.uuid):
            for index, disk in enumerate(seen.config.disks_of(instance)):
                if problem := report.bad_disks.get(disk.uuid):
                    message = f"disk {index} ({disk.backing.where}) on {node.name}: {problem}"
                    yield Finding("EINSTANCEFAULTYDISK", "instance", instance.name, message)


def check_left_over(seen: Seen) -> Iterator[Finding]:
    """Name what is in pools and belongs to no instance; where all nodes see it, only once."""
    known = _paths(seen.config)
    told: set[str] = set()
    shared = tuple(f"{pool.name}/" for pool in shared_pools(seen.config.cluster))
    for node, report in seen.answered():
        for path in report.disk_files:
            if path in known or path in told:
                continue
            if path.startswith(shared):
                told.add(path)
            message = f"the file {path} belongs to no instance"
            yield Finding("ENODEORPHANLV", "node", node.name, message)


def _paths(config: Config) -> set[str]:
    return {path for disk in config.disks.values() for path in disk.paths}
