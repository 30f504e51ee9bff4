"""Where a new instance goes."""

import math

import numpy as np

from common.errors import NoCapacity
from common.model.group import AllocationPolicy
from coordinator.allocator.allocation.numbers import numbers_behind
from coordinator.allocator.allocation.search import Search
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.refusal import Reason, in_words, tally
from coordinator.allocator.request import Allocate, GroupOutcome, Placement, Survey


def place(model: ClusterModel, request: Allocate) -> Placement:
    """Choose the nodes for a new instance, as hail does.

    Raises:
        NoCapacity: nothing fits now; says how many nodes were refused for what. Detail:
            ``refused`` (reason by node), ``unevacuable`` (a node that cannot be emptied,
            if that is why).
    """
    found = survey(model, request)
    if found.best is None:
        raise _no_capacity(model, request, found)
    chosen, *runners_up = found.best.choices
    return Placement(
        nodes=chosen.nodes,
        group=found.best.group,
        score_before=found.score_before,
        score_after=chosen.score,
        considered=found.considered,
        refused=found.refused,
        refusals=tally(found.refused.values()),
        runners_up=tuple(runners_up),
    )


def survey(model: ClusterModel, request: Allocate) -> Survey:
    """Try every group that may take the instance, and say what came of each."""
    wanted = _wanted_groups(model, request)
    scored = np.arange(model.size)
    if request.group is not None:
        scored = np.flatnonzero(model.group_of == wanted[0])
    search = Search(model, request, scored)
    found = [search.in_group(group) for group in wanted]

    refused = {name: reason for one in found for name, reason in one.reasons.items()}
    closed = {
        group for group, one in zip(wanted, found, strict=True) if _is_closed(one.outcome, request)
    }
    if closed or len(wanted) < len(model.snapshot.groups):
        for name, group in zip(model.names, model.group_of.tolist(), strict=True):
            if group not in wanted:
                refused[name] = Reason.GROUP
            elif group in closed:
                refused[name] = Reason.UNALLOCABLE
    outcomes = tuple(one.outcome for one in found)
    return Survey(
        groups=outcomes,
        best=_best_group(outcomes, request),
        score_before=search.score_before,
        considered=sum(one.considered for one in found),
        refused=refused,
        unevacuable=search.culprit,
    )


def _wanted_groups(model: ClusterModel, request: Allocate) -> list[int]:
    """The group asked for, else all that have nodes and are not ruled out."""
    if request.group is not None:
        return [request.group]
    indices: list[int] = sorted({*model.group_of.tolist()})
    return [index for index in indices if request.groups is None or index in request.groups]


def _is_closed(outcome: GroupOutcome, request: Allocate) -> bool:
    return request.group is None and outcome.alloc_policy is AllocationPolicy.UNALLOCABLE


def _best_group(outcomes: tuple[GroupOutcome, ...], request: Allocate) -> GroupOutcome | None:
    """Preferred groups before last resorts, then the lowest score, then the last group."""
    usable = [one for one in outcomes if one.choices and not _is_closed(one, request)]
    if any(math.isnan(one.choices[0].score) for one in usable):
        usable.reverse()  # what is no number has no order; hail then ends up with the first
    return min(
        reversed(usable),
        key=lambda one: (
            one.alloc_policy is AllocationPolicy.LAST_RESORT,
            one.choices[0].score,
        ),
        default=None,
    )


def _no_capacity(model: ClusterModel, request: Allocate, found: Survey) -> NoCapacity:
    demand, counts = request.instance, tally(found.refused.values())
    which = "No two nodes" if demand.is_mirrored else "No node"
    message = (
        f"{which} can take instance {demand.name} "
        f"(memory {demand.memory} MiB, disk {demand.disk} MiB): {in_words(counts)}."
    )
    message = " ".join((message, *numbers_behind(model, demand, found.refused)))
    detail: dict[str, object] = {
        "refused": {name: reason.name.lower() for name, reason in found.refused.items()}
    }
    if Reason.REDUNDANCY in counts and found.unevacuable is not None:
        message += f" For one, {found.unevacuable} could not be emptied onto other nodes."
        detail["unevacuable"] = found.unevacuable
    return NoCapacity(message, **detail)
