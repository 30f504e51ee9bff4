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
    if found.node is None:
        raise Refused(show.nothing_fits(found.failures))
    nodes = (instance.primary, found.node)
    names = tuple(model.names[node] for node in nodes)
    info = show.placed(show.score(found.score), found.successes, found.failures, names)
    return Answer(info, names[1], after={request.instance: nodes})
