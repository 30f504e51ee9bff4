"""The cluster as a whole: roles, the pool of candidates, references between objects."""

from collections.abc import Iterator

from coordinator.checks.finding import Finding, Seen, Severity


def check_roles(seen: Seen) -> Iterator[Finding]:
    """Tell of nodes out of service, and of a pool that is too small."""
    config = seen.config
    nodes = config.sorted_nodes()
    for word, chosen in (
        ("offline", [node.name for node in nodes if node.offline]),
        ("drained", [node.name for node in nodes if node.drained]),
    ):
        if chosen:
            message = f"{len(chosen)} {word} node(s): {', '.join(chosen)}"
            yield Finding("ECLUSTERCFG", "cluster", config.cluster.name, message, Severity.NOTICE)
    holders = [node.name for node in config.candidates()]
    candidates = len(holders)
    able = [n for n in nodes if n.master_capable and not (n.offline or n.drained)]
    possible = min(config.cluster.candidate_pool_size, len(able))
    if candidates < possible:
        message = (
            f"{candidates} master candidates, {possible} are possible; “gnt-node modify "
            "--master-candidate=yes” makes one"
        )
        yield Finding("ECLUSTERCFG", "cluster", config.cluster.name, message, Severity.WARNING)
    elif candidates == 2:
        message = (
            f"only {' and '.join(holders)} hold the state: when one of them fails, nothing can be "
            "changed until it is back; have a third master candidate"
        )
        yield Finding("ECLUSTERCFG", "cluster", config.cluster.name, message, Severity.WARNING)


def check_references(seen: Seen) -> Iterator[Finding]:
    """Name objects that refer to something that is not there."""
    config = seen.config
    owned = set()
    for instance in config.sorted_instances():
        if instance.primary_node not in config.nodes:
            yield Finding("ECLUSTERDANGLINGINST", "instance", instance.name, "its node is unknown")
        for uuid in (*instance.disks, *instance.nics):
            owned.add(uuid)
            if uuid not in config.disks and uuid not in config.nics:
                message = f"its device {uuid} is unknown"
                yield Finding("EINSTANCEMISSINGCFGPARAMETER", "instance", instance.name, message)
    disks = (disk for disk in config.disks.values() if disk.template is None)  # not detached
    for device in (*disks, *config.nics.values()):
        if device.uuid not in owned:
            message = f"the device {device.uuid} belongs to no instance"
            yield Finding("ECLUSTERCFG", "cluster", config.cluster.name, message)
    for node in config.sorted_nodes():
        if node.group not in config.groups:
            yield Finding("ECLUSTERDANGLINGNODES", "node", node.name, "its group is unknown")
