"""How many of one kind of instance fit, and where each of them goes.

Unlike hspace, which fills as fast as it can, this asks for each instance what an allocation
asks: the answer is what the same number of ``gnt-instance add`` would do.
"""

from __future__ import annotations

from common.record import Record, replace
from coordinator.allocator.allocation.place import survey
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.next_model import with_instance
from coordinator.allocator.refusal import Reason
from coordinator.allocator.request import Allocate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from common.names import NodeName

MOST = 10_000


class Capacity(Record):
    """What fits.

    Attributes:
        placements: the nodes of each instance in the order of coming, primary first.
        refused: why, per node that takes no more; empty if the limit was reached.
        unevacuable: a node that could not be emptied then, if that is why.
    """

    placements: tuple[tuple[NodeName, ...], ...]
    refused: Mapping[NodeName, Reason]
    unevacuable: NodeName | None = None


def room_for(
    model: ClusterModel,
    request: Allocate,
    limit: int = MOST,
    *,
    space: Mapping[NodeName, int] | None = None,
    is_shared: bool = False,
) -> Capacity:
    """Place instances one after the other until one fits nowhere.

    At most ``limit``. ``space`` tells how many each node has space for, of the only ones to look
    at, or for all nodes together if it ``is_shared``; None if the model knows all there is to know.
    """
    index = model.index
    left = None if space is None else dict(space)
    placements: list[tuple[NodeName, ...]] = []
    while len(placements) < limit:
        name = f"{request.instance.name}-{len(placements) + 1}"
        one = replace(request, instance=replace(request.instance, name=name))
        if left is not None:
            one = replace(one, among=frozenset(node for node, count in left.items() if count > 0))
        found = survey(model, one)
        if found.best is None:
            return Capacity(tuple(placements), found.refused, found.unevacuable)
        nodes = found.best.choices[0].nodes
        placements.append(nodes)
        if left is not None:
            for node in left if is_shared else nodes:
                left[node] -= 1
        model = with_instance(model, one.instance, tuple(index[node] for node in nodes))
    return Capacity(tuple(placements), {})
