"""One instance put on many nodes side by side, or taken off them; see ``shift``."""

from functools import lru_cache

import numpy as np

from coordinator.allocator.arrays import Ints
from coordinator.allocator.model import shift
from coordinator.allocator.model.resources import Demands, NodeResources, demands_of
from coordinator.allocator.snapshot import Instance


@lru_cache(maxsize=256)
def asked(demand: Instance) -> Demands:
    """What one instance asks, as columns of length 1."""
    return demands_of([demand])


@lru_cache(maxsize=256)
def asked_row(demand: Instance) -> Demands:
    """The same as Python's numbers."""
    return asked(demand).row(0)


def add_primary(
    nodes: NodeResources, demand: Instance, *, clashes: Ints, location: Ints, force: bool = False
) -> tuple[Ints, NodeResources]:
    """Run an instance on each node.

    Args:
        nodes: the resources before.
        demand: the instance.
        clashes: how many of its exclusion tags are taken on each node.
        location: what it adds to each node's location score.
        force: allow everything but using more memory or disk than there is.

    Returns:
        Codes of ``Reason`` per node, and the resources after; these are meaningless where the
        node was refused.
    """
    return shift.add_primary(
        nodes, asked(demand), clashes=clashes, location=location, force=np.array(force)
    )


def add_secondary(
    nodes: NodeResources,
    demand: Instance,
    *,
    promised: Ints,
    force: bool = False,
    ignore_disk: bool = False,
) -> tuple[Ints, NodeResources]:
    """Keep a copy of an instance's disks on each node.

    Args:
        nodes: the resources before.
        demand: the instance; only a mirrored one has a secondary node.
        promised: memory that each node already keeps for the instance's primary node.
        force: allow everything but using more disk than there is.
        ignore_disk: allow even that, on a node that is offline and lost its disks anyway.

    Returns:
        As ``add_primary``.
    """
    return shift.add_secondary(
        nodes,
        asked(demand),
        promised=promised,
        force=np.array(force),
        any_disk=np.array(ignore_disk),
    )


def remove_primary(
    nodes: NodeResources, demand: Instance, *, clashes: Ints, location: Ints
) -> NodeResources:
    """Take an instance off its primary node.

    ``clashes`` and ``location`` are what ``add_primary`` was given, or would be now.
    """
    return shift.remove_primary(nodes, asked(demand), freed=clashes, location=location)
