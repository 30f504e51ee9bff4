"""The model after a placement or moves, for the next question."""

from __future__ import annotations

from common.record import replace
from coordinator.allocator.model.evacuation_load import EvacuationLoad
from coordinator.allocator.model.peers import Peers
from coordinator.allocator.model.resources import Demands, asked
from coordinator.allocator.model.state import State
from coordinator.allocator.rows import Rows
from coordinator.allocator.snapshot import NOWHERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from coordinator.allocator.model.cluster_model import ClusterModel
    from coordinator.allocator.snapshot import Instance


def with_instance(model: ClusterModel, demand: Instance, nodes: tuple[int, ...]) -> ClusterModel:
    """The model of the same cluster with one more instance on ``nodes``, primary first.

    It goes on from the old one rather than being made afresh, as in hail: what a node
    measured counts at the start only.
    """
    state = State(model)
    state.put(demand, nodes)
    return with_instances(
        model,
        [(demand, nodes)],
        rows=state.rows,
        holders=state.holders,
        crowds=state.crowds,
    )


def with_instances(
    model: ClusterModel, placed: Sequence[tuple[Instance, tuple[int, ...]]], **derived: object
) -> ClusterModel:
    """The model with more instances.

    Each that was ``placed`` comes with its nodes, primary first. ``derived`` is what is known of
    the model by then; ``rows`` or ``resources`` at least.
    """
    rows = [asked(demand) for demand, _ in placed]
    homes = [nodes if len(nodes) > 1 else (nodes[0], NOWHERE) for _, nodes in placed]
    ends = list(zip(rows, homes, strict=True))
    instances = [
        replace(demand, primary=primary, secondary=secondary)
        for (demand, _), (primary, secondary) in zip(placed, homes, strict=True)
    ]
    columns, before = zip(*(row.figures for row in rows), strict=True), model.snapshot.instances
    together = before.followed_by(instances) if isinstance(before, Rows) else (*before, *instances)
    return model.changed(
        snapshot=replace(model.snapshot, instances=together),
        primary_of=[*model.primary_of, *(primary for primary, _ in homes)],
        secondary_of=[*model.secondary_of, *(secondary for _, secondary in homes)],
        demands=Demands(
            *([*old, *new] for old, new in zip(model.demands.figures, columns, strict=True))
        ),
        tags=[*model.tags, *(demand.tags for demand, _ in placed)],
        peers=model.peers.followed_by((*home, *Peers.counted(row)) for row, home in ends),
        evacuation_load=model.evacuation_load.followed_by(
            (home[0], *EvacuationLoad.counted(row)) for row, home in ends
        ),
        **derived,
    )


def with_moved(
    model: ClusterModel, homes: Mapping[int, tuple[int, int]], **derived: object
) -> ClusterModel:
    """The model with instances elsewhere, as a new beginning.

    ``homes`` are primary and secondary of the instances that may have moved, by index, in the order
    in which they did; ``derived`` is as of ``with_instances``.
    """
    primary_of, secondary_of = [*model.primary_of], [*model.secondary_of]
    arrivals = model.arrivals
    for index, (primary, secondary) in homes.items():
        if (primary_of[index], secondary_of[index]) != (primary, secondary):
            primary_of[index], secondary_of[index] = primary, secondary
            arrivals = (*arrivals, index)
    return model.changed(
        primary_of=primary_of, secondary_of=secondary_of, arrivals=arrivals, **derived
    )
