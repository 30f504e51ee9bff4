"""Trying one group: its candidates, the best choice, and why the others were refused."""

from __future__ import annotations

import math
from collections import Counter
from functools import cached_property
from itertools import islice

from coordinator.allocator.allocation.pair import Pairs
from coordinator.allocator.allocation.redundancy import Redundancy
from coordinator.allocator.model.state import State
from coordinator.allocator.model.trials import as_primary
from coordinator.allocator.refusal import REASONS, Reason
from coordinator.allocator.request import Choice, GroupOutcome
from coordinator.allocator.snapshot import NOWHERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from common.names import NodeName
    from coordinator.allocator.allocation.two_nodes import AllowedPairs
    from coordinator.allocator.model.cluster_model import ClusterModel
    from coordinator.allocator.model.state import Scope
    from coordinator.allocator.request import Allocate
    from coordinator.allocator.snapshot import Node

    _Count = Callable[[], Counter[Reason]]  # of those refused, by reason
    _Options = Iterator[tuple[tuple[int, ...], float]]

NOT_CONNECTED = "not connected to a network that the instance needs"
UNSUPPORTED = "Unsupported number of nodes, only one or two  supported"
TOO_FEW_NODES = "not enough online nodes"

CHOICES = 5  # the best and its runners-up


def why_unusable(node: Node, among: frozenset[str] | None) -> Reason:
    """Why a node is no candidate, whatever the instance; ``among`` None allows all."""
    if node.offline:
        return Reason.OFFLINE
    if not node.vm_capable:
        return Reason.NOT_VM_CAPABLE
    if node.drained:
        return Reason.DRAINED
    return Reason.RESTRICTED if among is not None and node.name not in among else Reason.NONE


class Search:
    """One allocation; each group is tried on the same state."""

    def __init__(self, model: ClusterModel, request: Allocate, scored: Sequence[int]) -> None:
        self._model = model
        self._request = request
        self._demand = request.instance
        self._state = State(model)
        self._redundancy = Redundancy(model, scored, request.instance, request.resides)
        self._scored = scored

    @cached_property
    def _scope(self) -> Scope:
        return self._state.scope(self._scored, for_pairs=self._request.pair)

    @property
    def score_before(self) -> float:
        """No number where no score decides."""
        return math.nan if self._request.by_loss else self._scope.standing.value

    @property
    def culprit(self) -> NodeName | None:
        """A node that could not be emptied, if the search met one."""
        culprit = self._redundancy.culprit
        return None if culprit == NOWHERE else self._model.names[culprit]

    def in_group(self, group: int) -> tuple[GroupOutcome, Mapping[NodeName, Reason]]:
        """Look for the best nodes of a group, given by index; tell why nodes were refused, too."""
        request, shown = self._request, self._model.snapshot.groups[group]
        members = self._model.groups.get(group, [])
        reasons = self._why_unusable(members)
        candidates = [node for node in members if node not in reasons]
        is_pair = request.pair

        problem = ""
        if not request.networks.issubset(shown.networks):
            problem = NOT_CONNECTED
            reasons.update(dict.fromkeys(candidates, Reason.NETWORK))
        elif request.required not in {None, 1, 2}:
            problem = UNSUPPORTED
        elif len(candidates) < (2 if is_pair else 1):
            problem = TOO_FEW_NODES
            reasons.update(dict.fromkeys(candidates, Reason.PARTNER))
        if problem:
            outcome = GroupOutcome(group=group, alloc_policy=shown.alloc_policy, problem=problem)
            return outcome, self._named(reasons)

        count = len(candidates)
        considered = count * (count - 1) if is_pair else count
        if request.by_loss:
            choices, refused = self._by_loss(candidates, reasons)
        else:
            try_all = self._pairs if is_pair else self._singles
            choices, refused = try_all(candidates, reasons)
        outcome = GroupOutcome(
            group=group,
            alloc_policy=shown.alloc_policy,
            choices=choices,
            considered=considered,
            count=refused,
        )
        return outcome, self._named(reasons)

    def _why_unusable(self, nodes: Sequence[int]) -> dict[int, Reason]:
        """The nodes that are no candidates, and why."""
        model, among = self._model, self._request.among
        reasons = {
            node: why_unusable(model.snapshot.nodes[node], among)
            for node in nodes
            if not model.usable[node] or (among is not None and model.names[node] not in among)
        }
        return {node: why for node, why in reasons.items() if why}

    def _named(self, reasons: Mapping[int, Reason]) -> dict[NodeName, Reason]:
        return {self._model.names[node]: reasons[node] for node in sorted(reasons)}

    def _by_loss(
        self, candidates: Sequence[int], reasons: dict[int, Reason]
    ) -> tuple[tuple[Choice, ...], _Count]:
        from coordinator.allocator.allocation.dedicated import choose_dedicated  # seldom needed

        best, failures, codes = choose_dedicated(self._state, self._request, candidates)
        reasons.update(_by_node(candidates, codes))
        choices = () if best is None else (Choice(self._names(best[1]), best[0]),)
        return choices, lambda: failures

    def _singles(
        self, candidates: Sequence[int], reasons: dict[int, Reason]
    ) -> tuple[tuple[Choice, ...], _Count]:
        demand, force = self._demand, self._request.ignore_soft_limits
        trials = as_primary(self._state, self._scope, candidates, demand, force=force)
        trials.refuse(self._model.forbidden(demand, candidates))
        codes = trials.codes
        choices: list[Choice] = []
        if self._request.check_redundancy and self._redundancy.is_hopeless:
            codes = [code or Reason.REDUNDANCY for code in codes]
        else:
            choices, rejected = self._choose(((node,), score) for node, score in trials.ranked())
            refused = {nodes[0] for nodes in rejected}
            pairs = zip(candidates, codes, strict=True)
            codes = [Reason.REDUNDANCY if node in refused else code for node, code in pairs]
        reasons.update(_by_node(candidates, codes))
        return tuple(choices), lambda: Counter(REASONS[code] for code in codes if code)

    def _pairs(
        self, candidates: Sequence[int], reasons: dict[int, Reason]
    ) -> tuple[tuple[Choice, ...], _Count]:
        pairs = Pairs(
            self._state,
            self._scope,
            candidates,
            self._demand,
            force=self._request.ignore_soft_limits,
        )
        considered, failures = pairs.count()
        is_possible = considered > failures.total()
        choices: list[Choice] = []
        allowed: AllowedPairs | None = None
        if self._request.check_redundancy and self._redundancy.is_hopeless:
            failures[Reason.REDUNDANCY] += considered - failures.total()
        elif is_possible:
            allowed = self._redundant_pairs(pairs)
            choices, rejected = self._choose(pairs.from_best(allowed))
            # Without a choice every pair was tried in vain.
            tried = len(rejected) if choices else considered - failures.total()
            failures[Reason.REDUNDANCY] += tried
        reasons.update(_refused_by_pairs(pairs, is_possible, is_found=bool(choices)))

        def count() -> Counter[Reason]:
            in_vain = pairs.count_rejected(allowed) if choices and allowed is not None else 0
            return failures + Counter({Reason.REDUNDANCY: in_vain})

        return tuple(choices), count

    def _redundant_pairs(self, pairs: Pairs) -> AllowedPairs | None:
        """Pairs whose mirrored instances stay safe; None for all of them."""
        if not self._request.check_redundancy:
            return None
        redundancy = self._redundancy
        return pairs.allowed(
            [node for node in pairs.nodes if redundancy.may_run_on(node)],
            [node for node in pairs.nodes if redundancy.may_have_copy(node)],
            redundancy.forbidden_pairs,
        )

    def _choose(self, options: _Options) -> tuple[list[Choice], list[tuple[int, ...]]]:
        """Take the best option that keeps the cluster redundant, and those that follow it.

        Runners-up are not checked: they are for comparison. Returns the options rejected on
        the way, too.
        """
        rejected: list[tuple[int, ...]] = []
        for nodes, score in options:
            if self._request.check_redundancy and not self._stays_redundant(nodes):
                rejected.append(nodes)
                continue
            following = islice(options, CHOICES - 1)
            chosen = [(nodes, score), *following]
            return [Choice(self._names(some), value) for some, value in chosen], rejected
        return [], rejected

    def _stays_redundant(self, nodes: tuple[int, ...]) -> bool:
        mirrored = len(nodes) > 1 or self._redundancy.may_run_on(nodes[0])
        return mirrored and self._redundancy.holds(nodes)

    def _names(self, nodes: tuple[int, ...]) -> tuple[NodeName, ...]:
        return tuple(self._model.names[node] for node in nodes)


def _refused_by_pairs(pairs: Pairs, is_possible: bool, *, is_found: bool) -> dict[int, Reason]:
    """Nodes that can be neither primary nor secondary; all of them if nothing was found."""
    codes = []
    for first, second in zip(pairs.primary_codes, pairs.secondary_codes, strict=True):
        code = first if second else 0
        if not is_found and not code:
            code = Reason.REDUNDANCY if is_possible else first or second or Reason.PARTNER
        codes.append(code)
    return _by_node(pairs.nodes, codes)


def _by_node(nodes: Sequence[int], codes: Sequence[int]) -> dict[int, Reason]:
    """The nodes that are refused, and why."""
    return {node: REASONS[code] for node, code in zip(nodes, codes, strict=True) if code}
