"""Which nodes could not be emptied as things stand: counted, and tried where that does not tell.

There is one answer for placements, fills and checks of health: mirrored instances, which have one
place to go, are a matter of arithmetic; for the others counting (see ``evacuation_load``) settles
almost all nodes, and only the rest are simulated (see ``evacuation``).
"""

from __future__ import annotations

from coordinator.allocator.allocation.evacuation import can_evacuate
from coordinator.allocator.model.assignment import residents_of
from coordinator.allocator.model.state import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from coordinator.allocator.model.cluster_model import ClusterModel
    from coordinator.allocator.model.evacuation_load import Outlook


def stuck_nodes(
    model: ClusterModel, nodes: Collection[int], scored: Sequence[int]
) -> Iterator[int]:
    """Yield those of ``nodes`` that could not be emptied, those that counting tells first.

    The score of ``scored`` decides where instances go while a node is emptied.
    """
    outlook = outlook_of(model, nodes)
    lost = lost_nodes(model, nodes, outlook)
    yield from sorted(lost)
    for node in outlook.doubtful:
        residents = residents_of(model, node)
        if node not in lost and not can_evacuate(State(model), node, residents, scored):
            yield node


def outlook_of(model: ClusterModel, nodes: Collection[int]) -> Outlook:
    """What counting tells of ``nodes`` as they stand."""
    memory, disk = [row.memory for row in model.rows], [row.disk for row in model.rows]
    return model.evacuation_load.judge(model.groups, nodes, memory, disk)


def lost_nodes(model: ClusterModel, nodes: Collection[int], outlook: Outlook) -> set[int]:
    """Those of ``nodes`` that for sure cannot be emptied, by what counting tells and by peers."""
    rows, lost, some = model.rows, set(outlook.lost), frozenset(nodes)
    has_exclusive = any(model.exclusive)
    for (primary, secondary), arriving in model.peers.arriving.items():
        if primary not in some or primary in lost:
            continue
        here, there = rows[primary], rows[secondary]
        if (
            there.memory <= arriving
            or there.disk <= 0
            or (here.disk <= 0 and not here.offline)
            or (model.tied[primary] and not model.may_migrate(primary, [secondary])[0])
            or (has_exclusive and _lacks_spindles(model, primary, secondary))
        ):
            lost.add(primary)
    return lost


def most_arriving(model: ClusterModel, nodes: Collection[int]) -> list[int]:
    """Per node: most memory that the failure of one of ``nodes`` brings."""
    arriving, ours = [0] * model.size, frozenset(nodes)
    for (primary, secondary), memory in model.peers.arriving.items():
        if primary in ours and memory > arriving[secondary]:
            arriving[secondary] = memory
    return arriving


def _lacks_spindles(model: ClusterModel, primary: int, secondary: int) -> bool:
    """Whether exclusive storage has no spindles for a failover."""
    return any(
        model.exclusive[end]
        and ((primary, secondary) in model.peers.unknown or model.rows[end].free_spindles < 0)
        for end in (primary, secondary)
    )
