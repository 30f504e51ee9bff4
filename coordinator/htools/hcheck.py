"""``hcheck``: whether a cluster is healthy, and whether balancing it would help."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: our products are thin

import numpy as np

from coordinator.allocator.allocation.emptying import stuck_nodes
from coordinator.allocator.balancing.balance import Balance, Limits
from coordinator.allocator.balancing.group_state import GroupState
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.snapshot import Snapshot
from coordinator.htools import hbal_options, source
from coordinator.htools.options import Option, Parsed
from coordinator.htools.program import run
from coordinator.htools.tables import show

_OF_BALANCING = (
    "evacuate", "length", "min_score", "min_gain", "min_gain_limit", "disk_moves",
    "instance_moves", "ignore_soft_errors",
)  # fmt: skip

OPTIONS = (
    source.TEXT,
    source.DYNU,
    source.IGNORE_DYNU,
    source.EXCLUDE,
    source.EXCLUSION,
    source.LUXI,
    source.RAPI,
    source.REQUEST,
    source.MACHINE,
    source.MAX_CPU,
    source.MIN_DISK,
    Option(
        key="simulate_moves", name="no-simulation", default=True, without=False,
        help="say how the cluster stands, without trying whether balancing helps",
    ),
    source.OFFLINE,
    source.QUIET,
    source.SELECT,
    Option(
        key="capacity", name="no-capacity-checks", default=True, without=False,
        help="do not check whether every node could be emptied",
    ),
    source.VERBOSE,
    *(option for option in hbal_options.OPTIONS if option.key in _OF_BALANCING),
)  # fmt: skip

_COUNTS = (
    ("N1_FAIL", "Nodes not N+1 happy"),
    ("CONFLICT_TAGS", "Nodes with conflicting instances"),
    ("OFFLINE_PRI", "Instances having the primary node offline"),
    ("OFFLINE_SEC", "Instances having a secondary node offline"),
    ("GN1_FAIL", "Nodes not directly evacuateable"),
)
_SCORE = ("SCORE", "Group score")
_VERDICT = ("NEED_REBALANCE", "Cluster is not healthy")
_PHASES = {"INIT": "initially", "FINAL": "after rebalancing"}


def main() -> None:
    """Run the command."""
    run("hcheck", OPTIONS, check)


@dataclass(frozen=True, slots=True)
class _Health:
    """What is wrong in a group, counted in the order of ``_COUNTS``, and its score."""

    group: int
    counts: list[int]
    score: float


def check(options: Parsed) -> int:
    """Load, check, print; returns the exit status: 1 if something is wrong."""
    loaded = source.load(options)
    cluster = source.with_offline(loaded, options)
    model = ClusterModel(cluster, least_disk=options.min_disk)
    if options.verbosity != 0:
        source.warn_of_missing(loaded)
    report = _Report(cluster, options)
    report.tell_groups()
    groups = _groups(cluster, model, options)
    before = [_health(group, balance, (), options) for group, balance in groups]
    totals = _totals(before)
    is_sick = sum(totals) > 0
    report.tell_verdict(is_sick=is_sick)
    report.tell("INIT", before, totals, is_sick=is_sick)
    helps = options.simulate_moves and is_sick
    if helps or options.machine:
        after = [
            _health(group, balance, _moves(balance, options) if helps else (), options)
            for group, balance in groups
        ]
        # Whether the cluster needs balancing is not asked anew, as with Debian's hcheck.
        report.tell("FINAL", after, _totals(after), is_sick=is_sick)
    if options.machine:
        sys.stdout.write("HCHECK_OK=1\n")
    return int(helps)


def _groups(cluster: Snapshot, model: ClusterModel, options: Parsed) -> list[tuple[int, Balance]]:
    """Every group that has nodes."""
    limits = Limits(
        min_gain=options.min_gain,
        min_gain_limit=options.min_gain_limit,
        evacuate=options.evacuate,
        disk_moves=options.disk_moves,
        instance_moves=options.instance_moves,
        ignore_soft_errors=options.ignore_soft_errors,
        selected=None if options.select is None else _full(cluster, options.select),
        excluded=_full(cluster, options.exclude),
    )
    homes = np.array([node.group for node in cluster.nodes], dtype=np.int64)
    return [
        (group, Balance(model, np.flatnonzero(homes == group), limits))
        for group in np.unique(homes).tolist()
    ]


def _full(cluster: Snapshot, names: Sequence[str]) -> frozenset[str]:
    suffix = source.common_suffix(cluster)
    return frozenset(
        one.name
        for one in cluster.instances
        if one.name in names or one.name.removesuffix(suffix) in names
    )


def _health(group: int, balance: Balance, moved: Sequence[int], options: Parsed) -> _Health:
    state = balance.state
    resources = state.resources
    counts = [
        int(np.count_nonzero(~resources.offline & resources.fails_n1)),
        int(np.count_nonzero(resources.conflicts > 0)),
        int(resources.primaries[resources.offline].sum()),
        int(np.count_nonzero(resources.offline)),  # nodes, not instances, as with Debian's hcheck
    ]
    if options.capacity:
        counts.append(len(stuck_in_group(state, moved)))
    return _Health(group, counts, balance.score().value)


def stuck_in_group(state: GroupState, moved: Sequence[int] = ()) -> set[int]:
    """Nodes of a group that could not be emptied within it.

    An instance whose mirror is in another group, or nowhere, cannot fail over within its own.
    """
    model = state.settled(moved)
    lonely = state.demands.mirrored & (state.demands.count > 0) & (state.secondary < 0)
    stuck = set(state.nodes[state.primary[lonely]].tolist())
    members: list[int] = state.nodes.tolist()
    others = [node for node in members if node not in stuck]
    return stuck | set(stuck_nodes(model, others, members))


def _totals(groups: Sequence[_Health]) -> list[int]:
    return [sum(column) for column in zip(*(group.counts for group in groups), strict=True)]


def _moves(balance: Balance, options: Parsed) -> list[int]:
    """Balance a group as hbal would; the instances moved."""
    enough = options.min_score + balance.optimum()
    moved: list[int] = []
    score, moves = balance.score().value, balance.moves()
    while score > enough and len(moved) != options.length:
        move = next(moves, None)
        if move is None:
            break
        moved.append(move.instance)
        score = move.score
    return moved


class _Report:
    """What is printed, for people or for programs."""

    def __init__(self, cluster: Snapshot, options: Parsed) -> None:
        self._cluster, self._options = cluster, options
        self._counts = _COUNTS if options.capacity else _COUNTS[:-1]

    def tell_groups(self) -> None:
        if self._options.machine:
            for index, group in enumerate(self._cluster.groups):
                _say_value(f"GROUP_UUID_{index}", group.uuid)

    def tell_verdict(self, *, is_sick: bool) -> None:
        if self._options.machine or self._options.verbosity < 1:
            return
        if not self._options.simulate_moves:
            _say("Running in no-simulation mode.")
        elif is_sick:
            _say("Cluster needs rebalancing.")
        else:
            _say("No need to rebalance cluster, no problems found.")

    def tell(
        self, phase: str, groups: Sequence[_Health], totals: Sequence[int], *, is_sick: bool
    ) -> None:
        for group in groups:
            values = [*map(str, group.counts), show(group.score)]
            name = self._cluster.groups[group.group].name
            self._tell_values(
                f"{phase}_GROUP_{group.group}",
                f"Statistics for group {name} {_PHASES[phase]}",
                (*self._counts, _SCORE),
                values,
            )
        verdict = str(int(is_sick)) if self._options.machine else str(is_sick)
        self._tell_values(
            f"{phase}_CLUSTER",
            f"Cluster statistics {_PHASES[phase]}",
            (*self._counts, _VERDICT),
            [*map(str, totals), verdict],
        )

    def _tell_values(
        self, prefix: str, title: str, what: Sequence[tuple[str, str]], values: Sequence[str]
    ) -> None:
        rows = zip(what, values, strict=False)  # of no groups at all there are no totals
        if self._options.machine:
            for (key, _), value in rows:
                _say_value(f"{prefix}_{key}", value)
        elif self._options.verbosity > 0:
            _say(f"\n{title}")
            for (_, words), value in rows:
                _say(f"    {words}: {value}")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _say_value(key: str, value: str) -> None:
    """As a shell reads it."""
    is_plain = all(letter.isalnum() or letter == "." for letter in value)
    text = value if is_plain else f"'{value}'"
    _say(f"HCHECK_{key.upper()}={text}")


if __name__ == "__main__":
    main()
