"""What is in use on nodes although no instance accounts for it."""

from collections.abc import Iterator

from coordinator.allocator.inventory import Inventory

_MEMORY = 512  # MiB that may be missing without a word
_DISK = 1024


def missing(cluster: Inventory) -> Iterator[str]:
    """Yield lines of a warning, none if all is well; the last nodes first, as in hail."""
    memory = [int(node.total_memory) - node.own_memory - node.free_memory for node in cluster.nodes]
    disk = [int(node.total_disk) - node.free_disk for node in cluster.nodes]
    for instance in cluster.instances:
        if instance.forthcoming:
            continue
        memory[instance.primary] -= instance.memory if instance.uses_memory else 0
        for node in instance.homes:
            disk[node] -= instance.disk
    wrong = [
        index
        for index in reversed(range(len(cluster.nodes)))
        if memory[index] > _MEMORY or disk[index] > _DISK
    ]
    if wrong:
        yield "Warning: cluster has inconsistent data:"
        for index in wrong:
            yield (
                f"  - node {cluster.nodes[index].name} is missing {memory[index]} MB ram "
                f"and {disk[index] // 1024} GB disk"
            )
        yield ""
