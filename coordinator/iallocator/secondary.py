"""allocate-secondary: an instance with one node is to be mirrored."""

from __future__ import annotations

from coordinator.allocator.allocation.second_node import choose_second_node
from coordinator.allocator.snapshot import NOWHERE
from coordinator.iallocator import show
from coordinator.iallocator.answers import Answer, Options, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from coordinator.allocator.model.cluster_model import ClusterModel
    from coordinator.iallocator.requests import AllocateSecondary


def allocate_secondary(model: ClusterModel, request: AllocateSecondary, options: Options) -> Answer:
    """Find a secondary node; the result is its bare name.

    Raises:
        Refused: it has one, or none fits.
    """
    instance = model.snapshot.instances[request.instance]
    if instance.secondary != NOWHERE:
        raise Refused("Instance already has a secondary")
    found = choose_second_node(
        model,
        request.instance,
        check_redundancy=options.check_capacity,
        ignore_soft_limits=options.ignore_soft_errors,
    )
    if not found.choices:
        raise Refused(show.nothing_fits(found.failures))
    names, score = found.choices[0].nodes, found.choices[0].score
    info = show.placed(show.score(score), found.successes, found.failures, names)
    nodes = (instance.primary, model.index[names[1]])
    return Answer(info, names[1], after={request.instance: nodes})
