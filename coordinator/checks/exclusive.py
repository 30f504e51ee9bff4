"""Exclusive storage: whether nodes are fit for it, and no physical volume is of two instances."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from common.model.spindles import differ_too_much
from common.noderpc.disks import VolumeListing
from coordinator.checks.finding import Finding, Seen
from coordinator.disks.exclusive import is_exclusive, spindles_of


def check_physical_volumes(seen: Seen) -> Iterator[Finding]:
    """Name nodes that do not tell of theirs, or of which these are not of one size."""
    for node, report in seen.answered():
        if not seen.config.cluster.volume_group_name or not is_exclusive(seen.config, node.uuid):
            continue
        found = spindles_of(seen.config, report.facts)
        if found is None:
            message = (
                "does not tell of its physical volumes, so it gets no disks, though its storage is "
                "to be exclusive: its volume group cannot be used, or it has an older version"
            )
            yield Finding("ENODELVM", "node", node.name, message)
        elif differ_too_much(found.smallest, found.largest):
            message = (
                f"its physical volumes are from {found.smallest} to {found.largest} MiB, and "
                "where storage is exclusive they are to be of one size"
            )
            yield Finding("ENODELVM", "node", node.name, message)


def check_sizes_in_groups(seen: Seen) -> Iterator[Finding]:
    """Name groups in which physical volumes of different nodes are not of one size."""
    told = [
        (node, found)
        for node, report in seen.answered()
        if is_exclusive(seen.config, node.uuid)
        and (found := spindles_of(seen.config, report.facts))
        and found.total
    ]
    for group in seen.config.sorted_groups():
        its = [(node, found) for node, found in told if node.group == group.uuid]
        if not its:
            continue
        small = min(its, key=lambda each: each[1].smallest)
        large = max(its, key=lambda each: each[1].largest)
        if differ_too_much(small[1].smallest, large[1].largest):
            message = (
                f"the smallest physical volume has {small[1].smallest} MiB ({small[0].name}) and "
                f"the largest one {large[1].largest} ({large[0].name}); where storage is exclusive "
                "they are to be of one size"
            )
            yield Finding("EGROUPDIFFERENTPVSIZE", "group", group.name, message)


def check_apart(seen: Seen) -> Iterator[Finding]:
    """Name physical volumes that an instance shares with another, or with what is not ours."""
    for node, report in seen.answered():
        for device, volumes in (
            _shared(report.volumes) if is_exclusive(seen.config, node.uuid) else ()
        ):
            whose = ", ".join(sorted({_owner(seen, each) for each in volumes}))
            message = f"the physical volume {device} is shared by {whose}; storage is exclusive"
            yield Finding("ENODELVM", "node", node.name, message)


def check_instances_apart(seen: Seen) -> Iterator[Finding]:
    """Name instances whose disks cannot keep to exclusive storage, or do not say how."""
    for instance in seen.config.made_instances:
        home = instance.primary_node
        if not seen.concerns(home) or not is_exclusive(seen.config, home):
            continue
        template, node = instance.disk_template, seen.config.nodes[home].name
        disks = [seen.config.disks[uuid] for uuid in instance.disks if uuid in seen.config.disks]
        if disks and not template.traits.is_apart:
            message = f"has {template} disks, which cannot be on {node}: its storage is exclusive"
            yield Finding("EINSTANCEUNSUITABLENODE", "instance", instance.name, message)
            continue
        for index, disk in enumerate(disks):
            if thin_pool := disk.backing.thin_pool:
                message = (
                    f"disk {index} is in the thin pool {thin_pool}, which all share: "
                    f"it cannot be on {node}, whose storage is exclusive"
                )
                yield Finding("EINSTANCEUNSUITABLENODE", "instance", instance.name, message)
            elif not disk.spindles:
                message = (
                    f"it is not known how many spindles disk {index} has for itself, as storage is "
                    f"exclusive on {node}; “gnt-cluster repair-disk-sizes {instance.name}” finds it"
                )
                yield Finding("EINSTANCEMISSINGCFGPARAMETER", "instance", instance.name, message)


def _shared(volumes: Iterable[VolumeListing]) -> Iterator[tuple[str, list[VolumeListing]]]:
    """Yield what is on physical volumes of several owners, if one of them is an instance."""
    on: dict[str, list[VolumeListing]] = defaultdict(list)
    for each in volumes:
        for device in each.devices:
            on[device].append(each)
    for device, its in sorted(on.items()):
        owners = {each.instance or (each.group, each.name) for each in its}
        if len(owners) > 1 and any(each.instance for each in its):
            yield device, its


def _owner(seen: Seen, volume: VolumeListing) -> str:
    if volume.instance is None:
        return f"the volume {volume.group}/{volume.name}"
    found = seen.config.instances.get(volume.instance)
    return found.name if found else f"the disk {volume.disk}"
