"""What is in use on nodes although no instance accounts for it."""

from __future__ import annotations

from coordinator.allocator.snapshot import USES_MEMORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from coordinator.allocator.snapshot import InstanceColumns, NodeColumns

_MEMORY = 512  # MiB that may be missing without a word
_DISK = 1024


def missing(nodes: NodeColumns, instances: InstanceColumns) -> Iterator[str]:
    """Yield lines of a warning, none if all is well; the last nodes first, as in hail."""
    each = zip(nodes.total_memory, nodes.own_memory, nodes.free_memory, strict=True)
    memory = [int(total) - own - free for total, own, free in each]
    disk = [int(t) - f for t, f in zip(nodes.total_disk, nodes.free_disk, strict=True)]
    for primary, secondary, needs, takes, status, is_coming in zip(
        instances.primary, instances.secondary, instances.memory, instances.disk,
        instances.status, instances.forthcoming, strict=True,
    ):  # fmt: skip
        if not is_coming:
            memory[primary] -= needs if status in USES_MEMORY else 0
            disk[primary] -= takes
            if secondary >= 0:
                disk[secondary] -= takes
    wrong = [
        index
        for index in reversed(range(len(disk)))
        if memory[index] > _MEMORY or disk[index] > _DISK
    ]
    if wrong:
        yield "Warning: cluster has inconsistent data:"
        for index in wrong:
            yield (
                f"  - node {nodes.names[index]} is missing {memory[index]} MB ram "
                f"and {disk[index] // 1024} GB disk"
            )
        yield ""
