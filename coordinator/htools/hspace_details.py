"""What hspace tells on stderr when it is asked for more: how things stand, what went where."""

import json
from collections.abc import Iterable, Sequence

import numpy as np

from coordinator.allocator.model.score import Score
from coordinator.allocator.packing.filling import Filling
from coordinator.allocator.snapshot import Snapshot
from coordinator.htools.output import tell
from coordinator.htools.tables import aligned, listed, score_table, show


def tell_score(filling: Filling) -> None:
    """What each term of the score amounts to."""
    score = Score(filling.resources, filling.crowding)
    tell(f"Initial coefficients: overall {show(score.value)}")
    tell(score_table(score.values()))


def tell_bad(cluster: Snapshot, filling: Filling, groups: Sequence[int]) -> None:
    """Nodes that fail N+1, and ``groups``, which have nodes that could not be emptied."""
    resources = filling.resources
    bad = np.flatnonzero(resources.fails_n1 & ~resources.offline).tolist()
    if bad:
        tell(f"Bad nodes: {_names(cluster.nodes[i].name for i in bad)}")
    if groups:
        tell(f"Bad groups: {_names(cluster.groups[i].name for i in groups)}")


def tell_candidates(filling: Filling, *, pair: bool) -> None:
    """Numbers of the nodes to try, or of each primary with its secondaries."""
    nodes, group_of = filling.candidates.tolist(), filling.start.group_of
    if pair:
        others = {
            one: [each for each in nodes if each != one and group_of[each] == group_of[one]]
            for one in nodes
        }
        pairs = ",".join(f"({one},{listed(them)})" for one, them in others.items() if them)
        tell(f"Allocatable nodes: Right [{pairs}]")
    else:
        tell(f"Allocatable nodes: Left {listed(nodes)}")


def tell_map(title: str, cluster: Snapshot, filling: Filling) -> None:
    """Where each instance went."""
    names = [node.name for node in cluster.nodes]
    is_exclusive = any(node.exclusive for node in cluster.nodes)
    rows = [
        [
            f"new-{number}", *(names[node] for node in one.nodes), *[""] * (2 - len(one.nodes)),
            str(one.demand.memory), str(one.demand.disk), str(one.demand.vcpus),
            str(one.demand.disk_spindles) if is_exclusive else "",
        ]
        for number, one in enumerate(filling.placed)
    ]  # fmt: skip
    tell(f"{title} map")
    if rows:
        tell(aligned(rows, (False, False, False, True, True, True, True)))


def _names(names: Iterable[str]) -> str:
    return json.dumps(list(names), separators=(",", ":"))
