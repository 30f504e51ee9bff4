"""What the allocator is asked, and what it answers."""

from __future__ import annotations

from functools import cached_property

from common.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from common.model.allocation_policy import AllocationPolicy
    from common.names import NodeName
    from coordinator.allocator.refusal import Reason
    from coordinator.allocator.snapshot import Instance


class Allocate(Record):
    """Find nodes for a new instance: two for ``drbd``, one for every other template.

    Attributes:
        group: only this group, by index, whatever its allocation policy; None for the best one.
        groups: only these, if ``group`` is None; None for all.
        among: only nodes of these names; None for all.
        networks: that its nics need; a group has to be connected to all of them.
        check_redundancy: whether every single node must stay one that could be emptied.
        ignore_soft_limits: of the primary node.
        resides: index of the instance if it is there already and is to have other nodes. It
            is then counted at both places, as hail does.
        required: number of nodes that it gets; None to go by its template.
        by_loss: whether what is lost to others decides instead of the score; see ``dedicated``.
    """

    instance: Instance
    group: int | None = None
    groups: frozenset[int] | None = None
    among: frozenset[str] | None = None
    networks: frozenset[str] = frozenset()
    check_redundancy: bool = True
    ignore_soft_limits: bool = False
    resides: int | None = None
    required: int | None = None
    by_loss: bool = False

    @property
    def pair(self) -> bool:
        """Whether two nodes are asked for."""
        return self.instance.is_mirrored if self.required is None else self.required == 2


class Relocate(Record):
    """Find another node, in the same group, for an instance.

    That is where one on shared storage runs, or the secondary node of a mirrored one.

    Attributes:
        among: only nodes of these names; None for all.
    """

    instance: str
    among: frozenset[str] | None = None


class Choice(Record):
    """Nodes, primary first, and the score of the cluster with the instance on them, or the loss."""

    nodes: tuple[NodeName, ...]
    score: Any


class GroupOutcome(Record):
    """What came of trying one group, counted as hail counts.

    Attributes:
        group: its index.
        choices: the best, then runners-up; empty when nothing fits.
        considered: number of nodes, or pairs, looked at.
        count: counts those refused by reason; only hail tells that, and for many pairs it takes
            longer than the choice.
        problem: why it was not tried at all; else empty.
    """

    group: int
    alloc_policy: AllocationPolicy
    choices: tuple[Choice, ...] = ()
    considered: int = 0
    count: Callable[[], Mapping[Reason, int]] = dict
    problem: str = ""

    @cached_property
    def failures(self) -> Mapping[Reason, int]:
        """Nodes, or pairs, refused, by reason."""
        return self.count()

    @property
    def successes(self) -> int:
        """Nodes, or pairs, that would do."""
        return self.considered - sum(self.failures.values())


class Survey(Record):
    """What came of trying all groups, or for a relocation the instance's own.

    Attributes:
        groups: each group that was tried, in the cluster's order.
        best: the one to take; None when nothing fits.
        score_before: of all nodes, or of those of the group asked for; lower is better.
        refused: why, per node that could not take part.
        unevacuable: a node that could not be emptied, if one stood in the way.
    """

    groups: tuple[GroupOutcome, ...]
    best: GroupOutcome | None
    score_before: float
    refused: Mapping[NodeName, Reason]
    unevacuable: NodeName | None = None

    @property
    def considered(self) -> int:
        """Number of nodes, or pairs, looked at."""
        return sum(one.considered for one in self.groups)

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The nodes to take, then runners-up in the same group; none when nothing fits."""
        return self.best.choices if self.best else ()

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        """The nodes to take, primary first; none when nothing fits."""
        return self.choices[0].nodes if self.choices else ()
