"""Logical volumes: whether each disk's are there, whole, its own, and no others of ours."""

from collections.abc import Iterator

from common.model.disk import Disk
from common.model.pool_kind import PoolKind
from common.noderpc.disks import VolumeListing
from coordinator.checks.finding import Finding, Seen, Severity
from coordinator.disks.kinds import KINDS
from coordinator.disks.leftovers import owners


def check_volumes(seen: Seen) -> Iterator[Finding]:
    """Name volumes of instances that no guest could use, or that are smaller than their disks."""
    there = {
        node.uuid: {f"{each.group}/{each.name}": each for each in report.volumes}
        for node, report in seen.answered()
    }
    for instance in seen.config.made_instances:
        for index, disk in enumerate(seen.config.disks_of(instance)):
            for uuid in disk.nodes if disk.backing.pools else ():
                for path in disk.backing.paths:
                    found = there.get(uuid, {}).get(path)
                    problem = _problem(disk, path, found) if found else ""
                    if problem:
                        node = seen.config.nodes[uuid].name
                        message = f"disk {index} ({path}) on {node} cannot be used: {problem}"
                        yield Finding("EINSTANCEFAULTYDISK", "instance", instance.name, message)


def check_lost_snapshots(seen: Seen) -> Iterator[Finding]:
    """Name snapshots that nobody can go back to."""
    problems = {
        (node.uuid, each.disk): each.problem
        for node, report in seen.answered()
        for each in report.volumes
        if each.disk
    }
    for instance in seen.config.made_instances:
        for index, disk in enumerate(seen.config.disks_of(instance)):
            for each in disk.snapshots:
                holder = each.node or instance.primary_node
                if problem := problems.get((holder, each.uuid)):
                    message = (
                        f"the snapshot {each.name} of disk {index} on "
                        f"{seen.config.nodes[holder].name} is of no use: {problem}; “gnt-instance "
                        f"remove-snapshot {instance.name} {each.name}” deletes it"
                    )
                    yield Finding("EINSTANCEFAULTYDISK", "instance", instance.name, message)


def check_orphans(seen: Seen) -> Iterator[Finding]:
    """Name volumes that were made for a disk that there is not any more, not there, or elsewhere.

    What Gantry has not made is none of its business.
    """
    disks = owners(seen.config)
    for node, report in seen.answered():
        for each in report.volumes:
            if each.disk is None:
                continue
            path, disk = f"{each.group}/{each.name}", disks.get(each.disk)
            if disk and node.uuid in disk.nodes and path in disk.paths:
                continue
            whose = f"the disk {each.disk} of the instance {each.instance}"
            why = f"of {whose}, which is not kept there" if disk else f"left over of {whose}"
            remedy = f"“gnt-node remove-leftovers {node.name}” deletes it"
            if disk and node.uuid in disk.nodes:
                remedy = f"“lvremove {path}” deletes it"
            message = f"the volume {path} is {why}; {remedy}"
            yield Finding("ENODEORPHANLV", "node", node.name, message)


def check_groups(seen: Seen) -> Iterator[Finding]:
    """Name volume groups that instances are in and that do not work, or will not for long.

    Those that new disks go in are looked at with the rest of the node.
    """
    config = seen.config
    usual = {kind.pool(config.cluster) for kind in KINDS.values()}
    used = {
        (uuid, pool) for disk in config.disks.values() for uuid in disk.nodes for pool in disk.pools
    }
    for node, report in seen.answered():
        for each in report.facts.storage:
            if each.pool.kind is not PoolKind.VOLUME_GROUP or not each.problem:
                continue
            if each.usable:
                yield Finding("ENODELVM", "node", node.name, each.problem, Severity.WARNING)
            elif (node.uuid, each.pool) in used and each.pool not in usual:
                message = f"{each.pool} is not usable: {each.problem}"
                yield Finding("ENODELVM", "node", node.name, message)


def _problem(disk: Disk, path: str, found: VolumeListing) -> str:
    if found.disk != disk.uuid:
        return f"it is {f'of the disk {found.disk}' if found.disk else 'not marked as ours'}"
    if found.problem:
        return found.problem
    if path == disk.backing.paths[0] and found.size < disk.size:
        return f"it has {found.size} MiB instead of {disk.size}"
    return ""
