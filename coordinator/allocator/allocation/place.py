"""Where a new instance goes."""

from __future__ import annotations

from types import MappingProxyType

from common.model.allocation_policy import AllocationPolicy
from coordinator.allocator.allocation.search import Search
from coordinator.allocator.allocation.why_not import no_capacity
from coordinator.allocator.refusal import Reason
from coordinator.allocator.request import GroupOutcome, Survey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from common.names import NodeName
    from coordinator.allocator.allocation.why_not import Miss
    from coordinator.allocator.model.cluster_model import ClusterModel
    from coordinator.allocator.request import Allocate


def place(
    model: ClusterModel, request: Allocate, missing: Mapping[NodeName, Miss] = MappingProxyType({})
) -> Survey:
    """Choose the nodes for a new instance, as hail does.

    ``missing`` is what nodes lack that are not among those to look at, if that is why.

    Raises:
        NoCapacity: nothing fits now; says why, with the figures of the nearest miss. Detail:
            ``refused`` (reason by node), ``unevacuable`` (a node that cannot be emptied,
            if that is why).
    """
    found = survey(model, request)
    if found.best is None:
        is_unsafe = Reason.REDUNDANCY in found.refused.values()
        which = "No two nodes" if request.pair else "No node"
        raise no_capacity(
            f"{which} can take instance {request.instance.name}",
            model,
            request.instance,
            found.refused,
            unevacuable=found.unevacuable if is_unsafe else None,
            missing=missing,
        )
    return found


def survey(model: ClusterModel, request: Allocate) -> Survey:
    """Try every group that may take the instance, and say what came of each."""
    wanted = _wanted_groups(model, request)
    scored = range(model.size) if request.group is None else model.groups.get(wanted[0], [])
    search = Search(model, request, scored)
    found = [search.in_group(group) for group in wanted]

    outcomes = tuple(outcome for outcome, _ in found)
    refused = {name: reason for _, reasons in found for name, reason in reasons.items()}
    closed = {outcome.group for outcome in outcomes if _is_closed(outcome, request)}
    if closed or len(wanted) < len(model.snapshot.groups):
        for name, group in zip(model.names, model.group_of, strict=True):
            if group not in wanted:
                refused[name] = Reason.GROUP
            elif group in closed:
                refused[name] = Reason.UNALLOCABLE
    return Survey(
        groups=outcomes,
        best=_best_group(outcomes, request),
        score_before=search.score_before,
        refused=refused,
        unevacuable=search.culprit,
    )


def _wanted_groups(model: ClusterModel, request: Allocate) -> list[int]:
    """The group asked for, else all that have nodes and are not ruled out."""
    if request.group is not None:
        return [request.group]
    allowed = request.groups
    return [index for index in model.groups if allowed is None or index in allowed]


def _is_closed(outcome: GroupOutcome, request: Allocate) -> bool:
    return request.group is None and outcome.alloc_policy is AllocationPolicy.UNALLOCABLE


def _best_group(outcomes: tuple[GroupOutcome, ...], request: Allocate) -> GroupOutcome | None:
    """Preferred groups before last resorts, then the lowest score, then the last group."""
    usable = [one for one in outcomes if one.choices and not _is_closed(one, request)]
    if any(one.choices[0].score != one.choices[0].score for one in usable):
        usable.reverse()  # what is no number has no order; hail then ends up with the first
    return min(
        reversed(usable),
        key=lambda one: (
            one.alloc_policy is AllocationPolicy.LAST_RESORT,
            one.choices[0].score,
        ),
        default=None,
    )
