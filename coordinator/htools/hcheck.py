"""``hcheck``: whether a cluster is healthy, and whether balancing it would help."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from coordinator.allocator.allocation.emptying import stuck_nodes
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.state import standing_of
from coordinator.allocator.snapshot import Snapshot
from coordinator.htools import source
from coordinator.htools.catalogue import named
from coordinator.htools.options import Parsed
from coordinator.htools.output import say, say_value
from coordinator.htools.program import run
from coordinator.htools.tables import show

OPTIONS = named(
    "text-data dynu-file ignore-dynu exclude-instances exclusion-tags luxi master ialloc-src"
    " machine-readable max-cpu min-disk no-simulation offline quiet select-instances"
    " no-capacity-checks verbose evac-mode max-length min-score min-gain min-gain-limit"
    " no-disk-moves no-instance-moves ignore-soft-errors"
)

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
    if options.verbose != 0:
        source.warn_of_missing(loaded)
    report = _Report(cluster, options)
    report.tell_groups()
    before = [_health(model, group, options) for group in model.groups]
    totals = _totals(before)
    is_sick = sum(totals) > 0
    report.tell_verdict(is_sick=is_sick)
    report.tell("INIT", before, totals, is_sick=is_sick)
    helps, after = not options.no_simulation and is_sick, before
    if helps:
        after = [
            _health(_balanced(model, group, options), group, options) for group in model.groups
        ]
    if helps or options.machine_readable:
        # Whether the cluster needs balancing is not asked anew, as with Debian's hcheck.
        report.tell("FINAL", after, _totals(after), is_sick=is_sick)
    if options.machine_readable:
        say_value("HCHECK_OK", 1)
    return int(helps)


def _health(model: ClusterModel, group: int, options: Parsed) -> _Health:
    nodes = model.groups[group]
    rows = [model.rows[node] for node in nodes]
    offline = [row for row in rows if row.offline]
    counts = [
        len(model.failing(nodes)),
        sum(row.conflicts > 0 for row in rows),
        sum(row.primaries for row in offline),
        len(offline),  # nodes, not instances, as with Debian's hcheck
    ]
    if not options.no_capacity_checks:
        counts.append(len(stuck_in_group(model, nodes)))
    return _Health(group, counts, standing_of(model, nodes).value)


def stuck_in_group(model: ClusterModel, nodes: Sequence[int]) -> set[int]:
    """Nodes of a group that could not be emptied within it.

    An instance whose mirror is in another group, or nowhere, cannot fail over within its own.
    """
    members, ends = frozenset(nodes), zip(model.primary_of, model.secondary_of, strict=True)
    kinds = zip(ends, model.demands.mirrored, model.real, strict=True)
    lonely = {one for (one, other), *flags in kinds if all(flags) and other not in members}
    stuck = lonely & members
    return stuck.union(stuck_nodes(model, sorted(members - stuck), nodes))


def _totals(groups: Sequence[_Health]) -> list[int]:
    return [sum(column) for column in zip(*(group.counts for group in groups), strict=True)]


def _balanced(model: ClusterModel, group: int, options: Parsed) -> ClusterModel:
    """The cluster with a group balanced as hbal would."""
    import numpy as np  # seldom needed, as all that follows

    from coordinator.allocator.balancing.balance import Balance
    from coordinator.htools.limits import limits_of

    balance = Balance(model, np.array(model.groups[group]), limits_of(model.snapshot, options))
    enough = options.min_score + balance.optimum()
    moved: list[int] = []
    score, moves = balance.score().value, balance.moves()
    while score > enough and len(moved) != options.max_length:
        move = next(moves, None)
        if move is None:
            break
        moved.append(move.instance)
        score = move.score
    return balance.state.settled(moved)


class _Report:
    """What is printed, for people or for programs."""

    def __init__(self, cluster: Snapshot, options: Parsed) -> None:
        self._cluster, self._options = cluster, options
        self._counts = _COUNTS[:-1] if options.no_capacity_checks else _COUNTS

    def tell_groups(self) -> None:
        if self._options.machine_readable:
            for index, group in enumerate(self._cluster.groups):
                say_value(f"HCHECK_GROUP_UUID_{index}", group.uuid)

    def tell_verdict(self, *, is_sick: bool) -> None:
        if self._options.machine_readable or self._options.verbose < 1:
            return
        if self._options.no_simulation:
            say("Running in no-simulation mode.")
        elif is_sick:
            say("Cluster needs rebalancing.")
        else:
            say("No need to rebalance cluster, no problems found.")

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
        verdict = str(int(is_sick)) if self._options.machine_readable else str(is_sick)
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
        if self._options.machine_readable:
            for (key, _), value in rows:
                say_value(f"HCHECK_{prefix}_{key}", value)
        elif self._options.verbose > 0:
            say(f"\n{title}")
            for (_, words), value in rows:
                say(f"    {words}: {value}")


main = partial(run, "hcheck", OPTIONS, check)
