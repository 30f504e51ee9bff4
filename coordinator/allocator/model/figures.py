"""What nodes contribute to the terms of the score; of arrays, or of one node's numbers."""

from __future__ import annotations

from coordinator.allocator.arithmetic import ratio, where

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from coordinator.allocator.arrays import Floats, Ints
    from coordinator.allocator.model.resources import NodeResources


def figures(resources: NodeResources) -> Floats:
    """What each node contributes to each term: shape (20, ...)."""
    import numpy as np

    rows = _contributions(resources)
    table = np.empty((len(rows), *resources.memory.shape))
    for term, row in enumerate(rows):
        table[term] = row
    return table


def figures_of_row(row: NodeResources) -> tuple[float, ...]:
    """The same of one node, with Python's numbers."""
    return tuple(map(float, _contributions(row)))


def _contributions(node: NodeResources) -> tuple[Any, ...]:
    online = node.offline ^ True
    reserved = ratio(node.reserved, node.total_memory)
    here = node.primaries + node.secondaries
    return (
        ratio(node.memory, node.total_memory),
        _free_disk(node, node.disk, node.free_spindles),
        (node.fails_n1 & online) * here,
        reserved,
        node.offline * here,
        node.offline * node.primaries,
        ratio(ratio(node.cpus, node.total_cpus), node.speed),
        *node.load,
        online * node.conflicts,
        ratio(node.spindles, node.spindle_limit),
        ratio(node.next_memory, node.total_memory),
        _free_disk(node, node.next_disk, node.next_free_spindles),
        ratio(ratio(node.next_cpus, node.total_cpus), node.speed),
        ratio(node.next_spindles, node.spindle_limit),
        online * node.location,
        0.0,
        where(online, reserved, 0.0),
    )


def _free_disk(node: NodeResources, disk: Ints, spindles: Ints) -> Any:
    share = ratio(where(node.exclusive, spindles, disk), node.disk_unit)
    return where(node.disk_unit == 0, 1.0, share)
