"""Whether nodes have space for disks, in each of the pools that these take space of.

The allocator knows one disk a node; the other pools are looked at here.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from common.model.disk import Disk
from common.model.node import Node
from common.model.pool import Pool
from common.model.pool_kind import PoolKind
from common.names import NodeName
from coordinator.disks.exclusive import is_exclusive
from coordinator.operations.placement.apart import Unfit, find_unfit, prefers_exclusive
from coordinator.operations.placement.look import Look
from coordinator.operations.placement.promises import PlannedInstance
from coordinator.operations.placement.room import SpindlesIn, Unit


class Shortage(NamedTuple):
    """What a node lacks, in words a predicate.

    Attributes:
        pool: of which space is needed.
        needed: how much.
        free: how much there is; None where there is no such pool.
        problem: why it cannot be used, in a sentence, whatever is free.
        unit: of both: MiB, or spindles, which are physical volumes that a disk has for itself.
    """

    pool: Pool
    needed: int
    free: int | None
    problem: str = ""
    unit: str = "MiB"

    def __str__(self) -> str:
        if self.problem:
            why = self.problem.rstrip(".")
            return f"cannot use {self.pool} ({why}), and {self.needed} {self.unit} of it are needed"
        left = "nothing of" if self.free is None else f"{max(0, self.free)} {self.unit} left in"
        return f"has {left} {self.pool}, and {self.needed} {self.unit} are needed"


def find_shortage(look: Look, node: Node, needs: Mapping[Unit, int]) -> Shortage | None:
    """Return what a node lacks, the first there is; one that does not answer is not judged."""
    for unit, needed in _counted_on(look, node, needs) if look.facts(node) else ():
        pool = unit.pool if isinstance(unit, SpindlesIn) else unit
        free = _free(look, node, unit)
        if free is None or free < needed:
            report = look.report_of(node, pool)
            problem = report.problem if report and not report.usable else ""
            return Shortage(pool, needed, free, problem, "MiB" if unit is pool else "spindles")
    return None


def shortages(look: Look, planned: PlannedInstance) -> dict[NodeName, Shortage | Unfit]:
    """Return the nodes that lack space for an instance's disks, or are not for such."""
    needs, apart = look.taken(planned.disks), prefers_exclusive(look.config, planned)
    found: dict[NodeName, Shortage | Unfit] = {}
    for node in look.config.sorted_nodes():
        lacking = find_unfit(look, node, planned) or find_shortage(look, node, needs)
        if apart and not is_exclusive(look.config, node.uuid):
            lacking = Unfit("has no exclusive storage, and spindles are asked for")
        if lacking is not None:
            found[node.name] = lacking
    return found


def _counted_on(look: Look, node: Node, needs: Mapping[Unit, int]) -> Iterator[tuple[Unit, int]]:
    """Yield of what is needed what counts on a node: of a volume group either spindles or MiB."""
    exclusive = is_exclusive(look.config, node.uuid)
    for unit, needed in needs.items():
        if isinstance(unit, SpindlesIn):
            if exclusive:
                yield unit, needed
        elif not exclusive or unit.kind is not PoolKind.VOLUME_GROUP:
            yield unit, needed


def _free(look: Look, node: Node, unit: Unit) -> int | None:
    if isinstance(unit, SpindlesIn):
        return look.free_spindles(node, unit.pool)
    return look.free_space(node, unit)


def nodes_but(
    look: Look, lacking: Mapping[NodeName, Shortage | Unfit]
) -> frozenset[NodeName] | None:
    """Return the nodes that lack nothing; None: all."""
    names = frozenset(node.name for node in look.config.nodes.values())
    return names - lacking.keys() if lacking else None


def counts(look: Look, disks: Sequence[Disk]) -> dict[NodeName, int] | None:
    """Return how many times nodes have space for disks; None where no node tells."""
    needs = look.taken(disks)
    if not needs:
        return None
    return {node.name: max(0, _times(look, node, needs)) for node in look.config.sorted_nodes()}


def _times(look: Look, node: Node, needs: Mapping[Unit, int]) -> int:
    counted = _counted_on(look, node, needs)
    return min(((_free(look, node, unit) or 0) // each for unit, each in counted), default=0)
