"""Choosing group and nodes for one instance, and telling it in hail's words."""

from __future__ import annotations

from types import MappingProxyType

from common.record import Record
from coordinator.allocator.allocation.place import survey
from coordinator.allocator.allocation.search import NOT_CONNECTED, UNSUPPORTED
from coordinator.iallocator import show
from coordinator.iallocator.answers import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from common.names import NodeName
    from coordinator.allocator.model.cluster_model import ClusterModel
    from coordinator.allocator.refusal import Reason
    from coordinator.allocator.request import Allocate, GroupOutcome
    from coordinator.allocator.snapshot import Group, Snapshot


class NothingFits(Refused):
    """Nodes were tried, but no node or pair can take the instance.

    Attributes:
        among_many: how hail words it when it is one of many instances.
    """

    def __init__(
        self,
        info: str,
        among_many: str = "",
        refused: Mapping[NodeName, Reason] | None = None,
    ) -> None:
        super().__init__(info, refused)
        self.among_many = among_many or info


class Placed(Record):
    """Where one instance goes, by node index, and what hail says of it."""

    nodes: tuple[int, ...]
    info: str
    refused: Mapping[NodeName, Reason] = MappingProxyType({})


def choose(model: ClusterModel, request: Allocate) -> Placed:
    """Choose by the score of the cluster, or by loss, as the request asks.

    Raises:
        NothingFits: says what came of each group.
        Refused: the only group in question could not even be tried.
    """
    cluster, found = model.snapshot, survey(model, request)
    groups = [cluster.groups[one.group] for one in found.groups]
    if request.group is not None:
        group, outcome = groups[0], found.groups[0]
        if outcome.problem:
            raise Refused(_problem(outcome, group, request))
        told = _described(outcome)
        info = f"{_headed(group)}: {told}"
        if found.best is None:
            raise NothingFits(info, told if request.by_loss else info, found.refused)
        return Placed(_nodes(outcome, model), info, found.refused)
    apart, others = [], []
    for group, outcome in zip(groups, found.groups, strict=True):
        if not outcome.problem:
            others.append(f"{_headed(group)}: {_described(outcome)}")
        elif outcome.problem == NOT_CONNECTED and not request.by_loss:
            apart.append(show.not_connected(f"group {group.name}", request.instance.name))
        else:
            others.append(f"Group {group.name}: error {_problem(outcome, group, request)}")
    messages = [*apart, *others]
    if not groups:
        messages.append(_no_groups(cluster, request))
    if found.best is None:
        raise NothingFits(", ".join(messages), refused=found.refused)
    chosen = cluster.groups[found.best.group]
    info = ", ".join([f"Selected group: {chosen.name}", *messages])
    return Placed(_nodes(found.best, model), info, found.refused)


def _problem(outcome: GroupOutcome, group: Group, request: Allocate) -> str:
    """Why a group could not be tried."""
    if outcome.problem == NOT_CONNECTED:
        return show.not_connected(f"The group {group.name}", request.instance.name)
    if outcome.problem == UNSUPPORTED:
        return UNSUPPORTED
    return "Not enough online nodes" if request.pair else "No online nodes"


def _headed(group: Group) -> str:
    return f"Group {group.name} ({group.alloc_policy})"


def _described(outcome: GroupOutcome) -> str:
    if not outcome.choices:
        return show.nothing_fits(outcome.failures)
    nodes, score = outcome.choices[0].nodes, outcome.choices[0].score
    told = _loss(*score) if isinstance(score, tuple) else show.score(score)
    return show.placed(told, outcome.successes, outcome.failures, nodes)


def _loss(allocations: tuple[int, ...], disk: int) -> str:
    return f"([{','.join(map(str, allocations))}],{disk})"


def _nodes(outcome: GroupOutcome, model: ClusterModel) -> tuple[int, ...]:
    return tuple(model.index[name] for name in outcome.choices[0].nodes)


def _no_groups(cluster: Snapshot, request: Allocate) -> str:
    allowed, every = "Nothing", {node.group for node in cluster.nodes}
    if request.groups is not None:
        allowed = f"Just [{','.join(map(str, sorted(request.groups)))}]"
    shown = show.groups(cluster.groups, every)
    return f"no groups for evacuation: allowed groups was {allowed}, all groups: {shown}"
