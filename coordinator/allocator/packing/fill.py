"""How many more instances fit: equal ones placed one after the other, until none fits.

Each goes where Debian's hspace puts it: a mirrored one on the pair of nodes of the lowest score,
scored by updated sums, another on the node of the lowest score, summed afresh; the last of equals.
New instances have no tags.
"""

import numpy as np

from common.errors import InvalidRequest
from coordinator.allocator.allocation.emptying import stuck_nodes
from coordinator.allocator.allocation.redundancy import Redundancy
from coordinator.allocator.packing.filling import Filled, Filling
from coordinator.allocator.packing.pairs import PairFill
from coordinator.allocator.packing.room import NO_LIMIT, room_of_disks, room_of_primaries
from coordinator.allocator.packing.singles import SingleFill
from coordinator.allocator.refusal import Failure
from coordinator.allocator.snapshot import Instance


def fill(start: Filling, demand: Instance, limit: int | None) -> Filled:
    """Place equal running instances until one fits nowhere, or so many are placed.

    Raises:
        InvalidRequest: they take nothing that a node runs out of, and there is no limit.
    """
    if limit is None and demand.used_memory <= 0 and _has_no_end(start, demand):
        raise InvalidRequest(
            "Instances of this size fit without end: give them memory, processors or disk, or"
            " say how many are enough with --max-length."
        )
    if not start.refusals.count(demand)[None]:
        return ended(start, demand)
    filling = _filled_freely(start, demand, limit)
    if demand.is_mirrored or _stays_spare(filling):
        return ended(filling, demand)
    nodes = [one.nodes for one in filling.placed[len(start.placed) :]]
    return _fill_carefully(start, demand, limit, nodes)


def _has_no_end(start: Filling, demand: Instance) -> bool:
    fits = (start.refusals.codes(demand) == 0).reshape(len(start.candidates), -1).any(axis=1)
    resources = start.resources.at(start.candidates[fits])
    room = np.minimum(room_of_primaries(resources, demand), room_of_disks(resources, demand))
    return bool((room >= NO_LIMIT).any())


def _filled_freely(start: Filling, demand: Instance, limit: int | None) -> Filling:
    """Without a look at whether nodes can still be emptied."""
    nodes: list[tuple[int, ...]] = []
    places = PairFill(start, demand) if demand.is_mirrored else SingleFill(start, demand)
    while limit is None or len(nodes) < limit:
        found = places.place()
        if found is None:
            break
        nodes.append(found)
    return start.after(demand, nodes)


def ended(filling: Filling, demand: Instance, in_vain: int = 0) -> Filled:
    """With why nodes refuse one more; ``in_vain`` of them only for the sake of the others."""
    count = filling.refusals.count(demand)
    failures = {failure: count[failure] for failure in Failure}
    failures[Failure.N1] += in_vain
    return Filled(filling, failures)


def _fill_carefully(
    start: Filling, demand: Instance, limit: int | None, nodes: list[tuple[int, ...]]
) -> Filled:
    """Go back to where nodes could still be emptied after some of ``nodes`` were taken.

    One that takes that away may be refused where it is best, but not elsewhere: from there on it is
    one by one.
    """
    good, bad = 0, len(nodes)
    while bad - good > 1:
        middle = (good + bad) // 2
        if _stays_spare(start.after(demand, nodes[:middle])):
            good = middle
        else:
            bad = middle
    filling = start.after(demand, nodes[:good])
    return _fill_one_by_one(filling, demand, None if limit is None else limit - good)


def _stays_spare(filling: Filling) -> bool:
    nodes = filling.rules.emptied
    if nodes is None:
        return True
    return next(stuck_nodes(filling.model(), nodes, range(filling.start.size)), None) is None


def _fill_one_by_one(start: Filling, demand: Instance, limit: int | None) -> Filled:
    filling, left = start, limit
    while True:
        singles, spare = SingleFill(filling, demand), _redundancy(filling, demand)
        best, in_vain = None, 0
        for node in singles.from_best():
            if spare is None or spare.remains((node,)):
                best = node
                break
            in_vain += 1
        if best is None or left == 0:
            return ended(filling, demand, in_vain)
        filling = filling.after(demand, [(best,)])
        left = None if left is None else left - 1


def _redundancy(filling: Filling, demand: Instance) -> Redundancy | None:
    nodes = filling.rules.emptied
    if nodes is None:
        return None
    return Redundancy(filling.model(), range(filling.start.size), demand, emptied=nodes)


def fits(filling: Filling, demand: Instance) -> bool:
    """Whether one more fits somewhere; what is mirrored is not held back by rules."""
    has_place = filling.refusals.count(demand)[None] > 0
    return has_place and (demand.is_mirrored or keeps_rules(filling, demand))


def keeps_rules(filling: Filling, demand: Instance) -> bool:
    """Whether one of the places that let an instance in keeps what the rules ask to be kept."""
    spare = _redundancy(filling, demand)
    if spare is None:
        return True
    places = filling.candidates[np.argwhere(filling.refusals.codes(demand) == 0)]
    return any(spare.remains(tuple(place)) for place in places.tolist())
