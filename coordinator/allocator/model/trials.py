"""One instance put on several nodes side by side, each as it stands; see ``shift``.

Among few nodes they are tried one by one, among many as arrays; the codes and figures are the
same to the last bit.
"""

from __future__ import annotations

from functools import cached_property

from coordinator.allocator.model import shift
from coordinator.allocator.model.figures import figures, figures_of_row
from coordinator.allocator.model.resources import asked, asked_arrays
from coordinator.allocator.rank import from_best

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from coordinator.allocator.model.resources import Demands, NodeResources
    from coordinator.allocator.model.state import Scope, State
    from coordinator.allocator.snapshot import Instance

    # Resources and demands, rows or arrays of both, and amounts of each node, to codes of
    # ``Reason`` and the resources afterwards.
    Change = Callable[..., tuple[Any, NodeResources]]


class Trials:
    """What came of it.

    Attributes:
        nodes: their indices, rising.
        codes: ``Reason`` of each.
        figures: of each with the instance; of meaning only to the score of the same scope, and
            where the node was not refused.
        crowding: what the instance adds on each to the count of crowded locations.
    """

    def __init__(
        self, scope: Scope, nodes: Sequence[int], codes: list[int], make: Callable[[], Any]
    ) -> None:
        self._scope, self.nodes, self.codes, self._make = scope, nodes, codes, make
        self.crowding = [0] * len(nodes)

    @cached_property
    def figures(self) -> Any:
        """Worked out when they are asked for: often the codes settle everything."""
        return self._make()

    def refuse(self, codes: Sequence[int]) -> None:
        """Refuse nodes for reasons that go before their own."""
        self.codes = [first or own for first, own in zip(codes, self.codes, strict=True)]

    def ranked(self, *, last_if_nan: bool = False) -> Iterator[tuple[int, float]]:
        """Yield (node, score) of those not refused, the best first; ties: the last node.

        ``last_if_nan`` is as of ``from_best``.
        """
        choices = [at for at, code in enumerate(self.codes) if not code]
        by_node = self.figures if isinstance(self.figures, list) else self.figures.T
        place, standing = self._scope.place, self._scope.standing
        changes = [[(place.get(self.nodes[at], -1), by_node[at])] for at in choices]
        more = [self.crowding[at] for at in choices]

        def exact(some: list[int]) -> list[float]:
            return standing.afresh([changes[at] for at in some], [more[at] for at in some])

        estimates = standing.estimated(changes, more)
        for at, score in from_best(estimates, exact, last_if_nan=last_if_nan):
            yield self.nodes[choices[at]], score


def as_primary(
    state: State, scope: Scope, nodes: Sequence[int], demand: Instance, *, force: bool
) -> Trials:
    """Run an instance on each node.

    Nodes are rising indices, those that are scored among them. ``force`` allows everything but
    using more memory or disk than there is.
    """

    def run(one: NodeResources, asks: Demands, clash: Any, place: Any) -> tuple[Any, NodeResources]:
        return shift.add_primary(one, asks, clashes=clash, location=place, force=force)

    amounts = state.clashes(demand, nodes), state.model.unmet_locations(demand, nodes)
    trials = on_each(state, scope, nodes, demand, run, *amounts)
    trials.crowding = state.crowding(demand, scope, nodes)
    return trials


def as_secondary(
    state: State,
    scope: Scope,
    nodes: Sequence[int],
    demand: Instance,
    *,
    promised: Sequence[int] | None = None,
    location: Sequence[int] | None = None,
    force: bool = False,
    ignore_disk: bool = False,
) -> Trials:
    """Keep a copy of an instance's disks on each node.

    Only a mirrored instance has a secondary node. ``promised`` is the memory that each node already
    keeps for its primary node, ``location`` what having the copy there adds to the location score;
    None for nothing. ``force`` allows everything but using more disk
    than there is; ``ignore_disk`` even that, on a node that is offline and lost its disks anyway.
    """

    def keep(
        one: NodeResources, asks: Demands, held: Any, near: Any = 0
    ) -> tuple[Any, NodeResources]:
        if location is not None:
            one = one.changed(location=one.location + near)
        return shift.add_secondary(one, asks, promised=held, force=force, any_disk=ignore_disk)

    amounts = [promised or [0] * len(nodes), *([] if location is None else [location])]
    return on_each(state, scope, nodes, demand, keep, *amounts)


def on_each(
    state: State,
    scope: Scope,
    nodes: Sequence[int],
    demand: Instance,
    change: Change,
    *amounts: Sequence[int],
) -> Trials:
    """Change each node on its own; ``amounts`` have an element per node."""
    if scope.is_small:
        asks = asked(demand)
        found = [
            change(state.row(node), asks, *own) for node, *own in zip(nodes, *amounts, strict=True)
        ]
        codes, rows = [code for code, _ in found], [row for _, row in found]
        return Trials(scope, nodes, codes, lambda: [*map(figures_of_row, rows)])
    import numpy as np

    columns = (np.array(column, dtype=np.int64) for column in amounts)
    found, after = change(state.at(np.array(nodes, dtype=np.int64)), asked_arrays(demand), *columns)
    return Trials(scope, nodes, found.tolist(), lambda: figures(after))
