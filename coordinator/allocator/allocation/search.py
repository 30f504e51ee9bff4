"""Trying one group: its candidates, the best choice, and why the others were refused."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np

from common.names import NodeName
from coordinator.allocator.allocation.pair import Pairs
from coordinator.allocator.allocation.redundancy import Redundancy
from coordinator.allocator.allocation.single import Singles
from coordinator.allocator.arrays import Bools, Ints
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.state import State
from coordinator.allocator.refusal import Reason
from coordinator.allocator.request import Allocate, Choice, GroupOutcome
from coordinator.allocator.snapshot import NOWHERE, Node

NOT_CONNECTED = "not connected to a network that the instance needs"
TOO_FEW_NODES = "not enough online nodes"

CHOICES = 5  # the best and its runners-up

_REASONS = tuple(Reason)  # by code; faster than making one
_Options = Iterator[tuple[tuple[int, ...], float]]


def why_unusable(node: Node, among: frozenset[str] | None) -> Reason:
    """Why a node is no candidate, whatever the instance; ``among`` None allows all."""
    if node.offline:
        return Reason.OFFLINE
    if not node.vm_capable:
        return Reason.NOT_VM_CAPABLE
    if node.drained:
        return Reason.DRAINED
    return Reason.RESTRICTED if among is not None and node.name not in among else Reason.NONE


@dataclass(frozen=True, slots=True)
class GroupResult:
    """The outcome of one group, the number of options, and why nodes were refused."""

    outcome: GroupOutcome
    considered: int
    reasons: Mapping[NodeName, Reason]


class Search:
    """One allocation; each group is tried on the same state."""

    def __init__(self, model: ClusterModel, request: Allocate, scored: Ints) -> None:
        self._model = model
        self._request = request
        self._demand = request.instance
        self._state = State(model)
        self._scope = self._state.scope(scored)
        self._redundancy = Redundancy(model, scored, request.instance, request.resides)

    @property
    def score_before(self) -> float:
        return self._scope.standing.value

    @property
    def culprit(self) -> NodeName | None:
        """A node that could not be emptied, if the search met one."""
        culprit = self._redundancy.culprit
        return None if culprit == NOWHERE else self._model.names[culprit]

    def in_group(self, group: int) -> GroupResult:
        """Look for the best nodes of a group, given by index."""
        request, shown = self._request, self._model.snapshot.groups[group]
        members = np.flatnonzero(self._model.group_of == group)
        reasons = self._why_unusable(members)
        candidates = members
        if reasons:
            left = [node for node in members.tolist() if node not in reasons]
            candidates = np.array(left, dtype=np.int64)
        is_pair = request.pair

        problem = ""
        if not request.networks.issubset(shown.networks):
            problem = NOT_CONNECTED
            reasons.update(dict.fromkeys(candidates.tolist(), Reason.NETWORK))
        elif len(candidates) < (2 if is_pair else 1):
            problem = TOO_FEW_NODES
            reasons.update(dict.fromkeys(candidates.tolist(), Reason.PARTNER))
        if problem:
            outcome = GroupOutcome(group=group, alloc_policy=shown.alloc_policy, problem=problem)
            return GroupResult(outcome, 0, self._named(reasons))

        count = len(candidates)
        considered = count * (count - 1) if is_pair else count
        if is_pair:
            choices, failures = self._pairs(candidates, reasons)
        else:
            choices, failures = self._singles(candidates, reasons)
        outcome = GroupOutcome(
            group=group,
            alloc_policy=shown.alloc_policy,
            choices=choices,
            successes=considered - failures.total(),
            failures=failures,
        )
        return GroupResult(outcome, considered, self._named(reasons))

    def _why_unusable(self, nodes: Ints) -> dict[int, Reason]:
        """The nodes that are no candidates, and why."""
        model, among = self._model, self._request.among
        if among is None:
            nodes = nodes[~model.usable[nodes]]
        reasons = {
            node: why_unusable(model.snapshot.nodes[node], among)
            for node in nodes.tolist()
            if not model.usable[node] or (among is not None and model.names[node] not in among)
        }
        return {node: why for node, why in reasons.items() if why}

    def _named(self, reasons: Mapping[int, Reason]) -> dict[NodeName, Reason]:
        return {self._model.names[node]: reasons[node] for node in sorted(reasons)}

    def _singles(
        self, candidates: Ints, reasons: dict[int, Reason]
    ) -> tuple[tuple[Choice, ...], Counter[Reason]]:
        singles = Singles.of(
            self._state,
            self._scope,
            candidates,
            self._demand,
            location=self._model.unmet_locations(self._demand, candidates),
            force=self._request.ignore_soft_limits,
            check_policy=True,
        )
        codes = singles.codes.copy()
        choices: list[Choice] = []
        if self._request.check_redundancy and self._redundancy.is_hopeless:
            codes[codes == 0] = Reason.REDUNDANCY
        else:
            options: _Options = (((node,), score) for node, score in singles.from_best())
            choices, rejected = self._choose(options)
            codes[np.searchsorted(candidates, [nodes[0] for nodes in rejected])] = Reason.REDUNDANCY
        reasons.update(_by_node(candidates, codes))
        return tuple(choices), Counter(_REASONS[code] for code in codes.tolist() if code)

    def _pairs(
        self, candidates: Ints, reasons: dict[int, Reason]
    ) -> tuple[tuple[Choice, ...], Counter[Reason]]:
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
        if self._request.check_redundancy and self._redundancy.is_hopeless:
            failures[Reason.REDUNDANCY] += considered - failures.total()
        elif is_possible:
            allowed = self._redundant_pairs(pairs)
            is_final = not self._request.check_redundancy or self._redundancy.is_assured
            choices, rejected = self._choose(
                pairs.from_best(allowed, CHOICES if is_final else None)
            )
            if choices:
                in_vain = pairs.count_rejected(allowed) if allowed is not None else 0
                failures[Reason.REDUNDANCY] += in_vain + len(rejected)
            else:  # so every pair was tried in vain
                failures[Reason.REDUNDANCY] += considered - failures.total()
        reasons.update(_refused_by_pairs(pairs, is_possible, is_found=bool(choices)))
        return tuple(choices), +failures

    def _redundant_pairs(self, pairs: Pairs) -> Bools | None:
        """Pairs whose mirrored instances stay safe; None for all of them."""
        if not self._request.check_redundancy:
            return None
        allowed = self._redundancy.pairs(pairs.primaries, pairs.nodes)
        return None if allowed.all() else allowed

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
        mirrored = len(nodes) > 1 or bool(self._redundancy.primaries(np.array(nodes[:1]))[0])
        return mirrored and self._redundancy.holds(nodes)

    def _names(self, nodes: tuple[int, ...]) -> tuple[NodeName, ...]:
        return tuple(self._model.names[node] for node in nodes)


def _refused_by_pairs(pairs: Pairs, is_possible: bool, *, is_found: bool) -> dict[int, Reason]:
    """Nodes that can be neither primary nor secondary; all of them if nothing was found."""
    first, second = pairs.primary_codes, pairs.secondary_codes
    codes = np.where(second > 0, first, 0)
    if not is_found:
        otherwise = Reason.REDUNDANCY if is_possible else Reason.PARTNER
        codes = np.select(
            [codes > 0, np.full(len(codes), is_possible), first > 0, second > 0],
            [codes, otherwise, first, second],
            otherwise,
        )
    return _by_node(pairs.nodes, codes)


def _by_node(nodes: Ints, codes: Ints) -> dict[int, Reason]:
    """The nodes that are refused, and why."""
    refused = np.flatnonzero(codes)
    nodes, codes = nodes[refused], codes[refused]
    return {node: _REASONS[code] for node, code in zip(nodes.tolist(), codes.tolist(), strict=True)}
