"""How many instances fit: the request type ``capacity``.

Ganeti's design asks for it; its hail never had it. A request is one to allocate, with a ``limit``
if that is of use; the result is the number and, for each instance in order, its nodes.
"""

from coordinator.allocator.allocation.capacity import MOST, room_for
from coordinator.allocator.allocation.search import UNSUPPORTED
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.refusal import in_words, tally
from coordinator.iallocator.allocation import Placer
from coordinator.iallocator.answers import Answer, Options, Refused
from coordinator.iallocator.requests import Capacity


def capacity(model: ClusterModel, request: Capacity, options: Options) -> Answer:
    """Count.

    Raises:
        Refused: there is no such group, or the number of nodes makes no sense.
    """
    one = request.one
    if one.new.required_nodes not in {1, 2}:
        raise Refused(UNSUPPORTED)
    placer = Placer(model.snapshot, options, one.group_name, one.among)
    asked = placer.request(one.new, one.group_name)
    room = room_for(model, asked, MOST if request.limit is None else min(request.limit, MOST))
    count = len(room.placements)
    why = f"; then {in_words(tally(room.refused.values()))}" if room.refused else ""
    return Answer(
        f"{count} instances fit{why}",
        [count, [list(nodes) for nodes in room.placements]],
        refused=room.refused,
    )
