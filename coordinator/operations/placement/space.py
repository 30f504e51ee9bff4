"""Whether nodes have space for disks, in each of the pools that these take space of.

The allocator knows one disk a node; the other pools are looked at here.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from common.model.disk import Disk
from common.model.node import Node
from common.model.pool import Pool
from common.names import MiB, NodeName
from coordinator.operations.placement.look import Look


class Shortage(NamedTuple):
    """What a node lacks, in words a predicate.

    Attributes:
        pool: of which space is needed.
        needed: how much.
        free: how much there is; None where there is no such pool.
        problem: why it cannot be used, in a sentence, whatever is free.
    """

    pool: Pool
    needed: MiB
    free: MiB | None
    problem: str = ""

    def __str__(self) -> str:
        if self.problem:
            why = self.problem.rstrip(".")
            return f"cannot use {self.pool} ({why}), and {self.needed} MiB of it are needed"
        left = "nothing of" if self.free is None else f"{max(0, self.free)} MiB left in"
        return f"has {left} {self.pool}, and {self.needed} MiB are needed"


def find_shortage(look: Look, node: Node, needs: Mapping[Pool, int]) -> Shortage | None:
    """Return what a node lacks, the first there is; one that does not answer is not judged."""
    for pool, needed in needs.items() if look.facts(node) else ():
        free = look.free_space(node, pool)
        if free is None or free < needed:
            report = look.report_of(node, pool)
            problem = report.problem if report and not report.usable else ""
            return Shortage(pool, MiB(needed), free, problem)
    return None


def shortages(look: Look, disks: Sequence[Disk]) -> dict[NodeName, Shortage]:
    """Return the nodes that lack space for disks."""
    needs = look.taken(disks)
    found = ((node.name, find_shortage(look, node, needs)) for node in look.config.sorted_nodes())
    return {name: lacking for name, lacking in found if lacking is not None}


def nodes_but(look: Look, lacking: Mapping[NodeName, Shortage]) -> frozenset[NodeName] | None:
    """Return the nodes that lack nothing; None: all."""
    names = frozenset(node.name for node in look.config.nodes.values())
    return names - lacking.keys() if lacking else None


def counts(look: Look, disks: Sequence[Disk]) -> dict[NodeName, int] | None:
    """Return how many times nodes have space for disks; None where no node tells."""
    needs = look.taken(disks)
    if not needs:
        return None
    return {
        node.name: max(0, min((look.free_space(node, pool) or 0) // needs[pool] for pool in needs))
        for node in look.config.sorted_nodes()
    }
