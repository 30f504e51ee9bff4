"""Providers of external storage: whether all nodes can use those that keep disks."""

from collections.abc import Iterator

from coordinator.checks.finding import Finding, Seen


def check_providers(seen: Seen) -> Iterator[Finding]:
    """Name nodes whose instances, or those of their group, have disks that they cannot reach."""
    config = seen.config
    needed: dict[str, set[str]] = {}  # by group
    for instance in config.made_instances:
        names = {disk.backing.provider for disk in config.disks_of(instance)} - {""}
        if home := config.nodes.get(instance.primary_node):
            needed.setdefault(home.group, set()).update(names)
    for node, report in seen.answered():
        found = {each.name: each.problem for each in report.providers}
        for name in sorted(needed.get(node.group, ())) if node.vm_capable else ():
            problem = found.get(name, f"This node has no provider “{name}”.")
            if problem:
                message = f"cannot use disks that the provider {name} keeps: {problem}"
                yield Finding("ENODEUSERSCRIPTS", "node", node.name, message)
