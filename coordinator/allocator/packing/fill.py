"""How many more instances fit: equal ones placed one after the other, until none fits.

Each goes where Debian's hspace puts it: a mirrored one on the pair of nodes of the lowest score,
scored by updated sums, another on the node of the lowest score, summed afresh; the last of equals.
New instances have no tags.
"""

import numpy as np

from common.errors import InvalidRequest
from coordinator.allocator.allocation.emptying import stuck_nodes
from coordinator.allocator.allocation.redundancy import Redundancy
from coordinator.allocator.packing.codes import Failure
from coordinator.allocator.packing.filling import Filled, Filling
from coordinator.allocator.packing.pairs import PairFill
from coordinator.allocator.packing.room import NO_LIMIT, room_of_disks, room_of_primaries
from coordinator.allocator.packing.singles import SingleFill
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
    if demand.is_mirrored or start.rules.emptied is None:
        return _fill_freely(start, demand, limit)
    return _fill_carefully(start, demand, limit)


def _has_no_end(start: Filling, demand: Instance) -> bool:
    fits = (start.refusals.codes(demand) == 0).reshape(len(start.candidates), -1).any(axis=1)
    resources = start.resources.at(start.candidates[fits])
    room = np.minimum(room_of_primaries(resources, demand), room_of_disks(resources, demand))
    return bool((room >= NO_LIMIT).any())


def _fill_freely(start: Filling, demand: Instance, limit: int | None) -> Filled:
    """Without a look at whether nodes can still be emptied."""
    count = start.refusals.count(demand)
    if not count.places:
        return Filled(start, count.refused)
    nodes: list[tuple[int, ...]] = []
    places = PairFill(start, demand) if demand.is_mirrored else SingleFill(start, demand)
    while limit is None or len(nodes) < limit:
        found = places.place()
        if found is None:
            break
        nodes.append(found)
    filling = start.after(demand, nodes)
    return Filled(filling, _failures(filling, demand))


def _failures(filling: Filling, demand: Instance) -> dict[Failure, int]:
    return dict(filling.refusals.count(demand).refused)


def _fill_carefully(start: Filling, demand: Instance, limit: int | None) -> Filled:
    """Place as many as fit, look then, and go back to where nodes could still be emptied.

    One that takes that away may be refused where it is best, but not elsewhere: from there on it is
    one by one.
    """
    full = _fill_freely(start, demand, limit)
    if _stays_spare(full.filling):
        return full
    nodes = [one.nodes for one in full.filling.placed[len(start.placed) :]]
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
            failures = _failures(filling, demand)
            failures[Failure.N1] += in_vain
            return Filled(filling, failures)
        filling = filling.after(demand, [(best,)])
        left = None if left is None else left - 1


def _redundancy(filling: Filling, demand: Instance) -> Redundancy | None:
    nodes = filling.rules.emptied
    if nodes is None:
        return None
    if filling.redundancy is None:
        everyone = range(filling.start.size)
        filling.redundancy = Redundancy(filling.model(), everyone, demand, emptied=nodes)
    return filling.redundancy.of_another(demand)


def keeps_rules(filling: Filling, demand: Instance) -> bool:
    """Whether one of the places that let an instance in keeps what the rules ask to be kept."""
    if demand not in filling.kept:
        filling.kept[demand] = _keeps_rules(filling, demand, by_score=True)
    return filling.kept[demand]


def might_keep_rules(filling: Filling, demand: Instance) -> bool:
    """Whether one does if every choice, while nodes are emptied, turns out well.

    If not, none does of any larger instance that all nodes treat alike.
    """
    return _keeps_rules(filling, demand, by_score=False)


def _keeps_rules(filling: Filling, demand: Instance, *, by_score: bool) -> bool:
    spare = _redundancy(filling, demand)
    if spare is None:
        return True
    places = filling.candidates[np.argwhere(filling.refusals.codes(demand) == 0)]
    return any(spare.remains(tuple(place), by_score=by_score) for place in places.tolist())
