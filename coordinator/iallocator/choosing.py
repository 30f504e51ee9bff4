"""Choosing group and nodes for one instance, and telling it in hail's words."""

from __future__ import annotations

from types import MappingProxyType

from common.model.allocation_policy import AllocationPolicy
from common.record import Record
from coordinator.allocator.allocation.place import survey
from coordinator.allocator.allocation.search import NOT_CONNECTED
from coordinator.iallocator import show
from coordinator.iallocator.answers import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from common.names import NodeName
    from coordinator.allocator.allocation.dedicated import DedicatedOutcome
    from coordinator.allocator.model.cluster_model import ClusterModel
    from coordinator.allocator.refusal import Reason
    from coordinator.allocator.request import Allocate, GroupOutcome
    from coordinator.allocator.snapshot import Group, Snapshot

UNSUPPORTED = "Unsupported number of nodes, only one or two  supported"


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
    """Choose by the score of the cluster.

    Raises:
        NothingFits: says what came of each group.
        Refused: the only group in question could not even be tried.
    """
    cluster, found = model.snapshot, survey(model, request)
    groups = [cluster.groups[one.group] for one in found.groups]
    if request.group is not None:
        group, outcome = groups[0], found.groups[0]
        if outcome.problem == NOT_CONNECTED:
            raise Refused(_not_connected(f"The group {group.name}", request))
        if outcome.problem:
            raise Refused(_too_few(request))
        info = f"{_headed(group)}: {_described(outcome)}"
        if found.best is None:
            raise NothingFits(info, refused=found.refused)
        return Placed(_nodes(outcome, model), info, found.refused)
    apart, others = [], []
    for group, outcome in zip(groups, found.groups, strict=True):
        if not outcome.problem:
            others.append(f"{_headed(group)}: {_described(outcome)}")
        elif outcome.problem == NOT_CONNECTED:
            apart.append(_not_connected(f"group {group.name}", request))
        else:
            others.append(f"Group {group.name}: error {_too_few(request)}")
    messages = [*apart, *others]
    if not groups:
        messages.append(_no_groups(cluster, request))
    if found.best is None:
        raise NothingFits(", ".join(messages), refused=found.refused)
    chosen = cluster.groups[found.best.group]
    info = ", ".join([f"Selected group: {chosen.name}", *messages])
    return Placed(_nodes(found.best, model), info, found.refused)


def choose_by_loss(model: ClusterModel, request: Allocate) -> Placed:
    """Choose by lost allocations, where all storage is exclusive.

    Raises:
        NothingFits: as ``choose``.
    """
    wanted = [index for index in model.groups if request.groups is None or index in request.groups]
    if request.group is not None:
        wanted = [request.group]
    messages: list[str] = []
    tried: list[tuple[Group, DedicatedOutcome]] = []
    for index in wanted:
        group = model.snapshot.groups[index]
        problem, outcome = _try_dedicated(model, request, group, index)
        if outcome is not None:
            tried.append((group, outcome))
            messages.append(f"{_headed(group)}: {_described_loss(outcome, model)}")
        elif request.group is not None:
            raise Refused(problem)
        else:
            messages.append(f"Group {group.name}: error {problem}")
    if request.group is not None:
        group, outcome = tried[0]
        if not outcome.nodes:
            raise NothingFits(messages[0], _described_loss(outcome, model))
        return Placed(outcome.nodes, messages[0])
    usable = [
        (group.alloc_policy is AllocationPolicy.LAST_RESORT, outcome.loss, -order, group, outcome)
        for order, (group, outcome) in enumerate(tried)
        if outcome.loss is not None and group.alloc_policy is not AllocationPolicy.UNALLOCABLE
    ]
    if not usable:
        raise NothingFits(", ".join(messages))
    *_, group, outcome = min(usable, key=lambda one: one[:3])
    return Placed(outcome.nodes, ", ".join([f"Selected group: {group.name}", *messages]))


def _try_dedicated(
    model: ClusterModel, request: Allocate, group: Group, index: int
) -> tuple[str, DedicatedOutcome | None]:
    if not request.networks <= set(group.networks):
        return _not_connected(f"The group {group.name}", request), None
    among = request.among
    candidates = [
        node
        for node in model.groups.get(index, [])
        if model.usable[node] and (among is None or model.names[node] in among)
    ]
    if len(candidates) < (2 if request.pair else 1):
        return _too_few(request), None
    from coordinator.allocator.allocation.dedicated import choose_dedicated  # seldom needed

    return "", choose_dedicated(model, request, candidates)


def _not_connected(group: str, request: Allocate) -> str:
    return show.not_connected(group, request.instance.name)


def _too_few(request: Allocate) -> str:
    return "Not enough online nodes" if request.pair else "No online nodes"


def _headed(group: Group) -> str:
    return f"Group {group.name} ({group.alloc_policy})"


def _described(outcome: GroupOutcome) -> str:
    if not outcome.choices:
        return show.nothing_fits(outcome.failures)
    best = outcome.choices[0]
    return show.placed(show.score(best.score), outcome.successes, outcome.failures, best.nodes)


def _described_loss(outcome: DedicatedOutcome, model: ClusterModel) -> str:
    if outcome.loss is None:
        return show.nothing_fits(outcome.failures)
    allocations, disk = outcome.loss
    lost = ",".join(map(str, allocations))
    names = tuple(model.names[node] for node in outcome.nodes)
    return show.placed(f"([{lost}],{disk})", outcome.successes, outcome.failures, names)


def _nodes(outcome: GroupOutcome, model: ClusterModel) -> tuple[int, ...]:
    return tuple(model.index[name] for name in outcome.choices[0].nodes)


def _no_groups(cluster: Snapshot, request: Allocate) -> str:
    allowed, every = "Nothing", {node.group for node in cluster.nodes}
    if request.groups is not None:
        allowed = f"Just [{','.join(map(str, sorted(request.groups)))}]"
    shown = show.groups(cluster.groups, every)
    return f"no groups for evacuation: allowed groups was {allowed}, all groups: {shown}"
