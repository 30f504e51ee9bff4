"""``hspace``: how many more instances a cluster has room for."""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from common.errors import InvalidRequest, NoCapacity
from common.model.allocation_policy import AllocationPolicy
from common.model.template import TRAITS
from common.record import replace
from coordinator.allocator.allocation.emptying import stuck_nodes
from coordinator.allocator.arrays import Bools
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.packing.fill import fill
from coordinator.allocator.packing.filling import Filled, Filling, Rules
from coordinator.allocator.packing.tiers import fill_in_tiers
from coordinator.allocator.policy import Spec
from coordinator.allocator.refusal import Failure
from coordinator.allocator.snapshot import Instance, Snapshot
from coordinator.htools import source
from coordinator.htools.catalogue import named
from coordinator.htools.hspace_details import tell_bad, tell_candidates, tell_map, tell_score
from coordinator.htools.hspace_report import Human, Machine
from coordinator.htools.options import Parsed
from coordinator.htools.output import tell
from coordinator.htools.program import run
from coordinator.htools.resources import Resources
from coordinator.htools.saving import write
from coordinator.htools.tables import node_table
from coordinator.htools.text import format_cluster
from coordinator.htools.view import at_home, nodes_now, settled
from coordinator.iallocator.names import common_suffix

OPTIONS = named(
    "print-nodes text-data disk-template spindle-use simulate master rapi-ca luxi ialloc-src"
    " verbose quiet independent-groups accept-existing-errors offline no-capacity-checks"
    " machine-readable max-cpu max-length min-disk standard-alloc tiered-alloc save"
    " static-kvm-node-memory",
    save="write the cluster, as filled, to FILE.tiered and FILE.standard",
)

_Way = Callable[[Filling, Instance, int | None], Filled]


def measure(options: Parsed) -> int:
    """Load, fill, print; returns the exit status."""
    for ratio, name in ((options.max_cpu, "max-cpu"), (options.min_disk, "min-disk")):
        if ratio is not None and not math.isfinite(ratio):
            raise InvalidRequest(f"The {name} ratio has to be a number, {ratio} is none.")
    cluster = source.with_offline(source.load(options), options)
    if options.verbose > 0:
        source.warn_of_missing(cluster)
    return _Run(options, cluster).go()


class _Run:
    def __init__(self, options: Parsed, cluster: Snapshot) -> None:
        self._options, self._cluster = options, cluster
        policy = cluster.policy
        if not policy.disk_templates:
            raise InvalidRequest("null list of disk templates received from cluster")
        self._template = options.disk_template or policy.disk_templates[0]
        self._is_pair = TRAITS[self._template].is_mirrored
        self._suffix = common_suffix(cluster)
        model = ClusterModel(cluster, least_disk=options.min_disk)
        self._stuck: list[int] = []  # groups, found out where anybody wants to know
        if options.independent_groups or options.verbose > 3:
            self._stuck = [index for index in model.groups if self._is_stuck(model, index)]
        self._rules, self._is_hopeless = self._rules_for(model)
        self._start = Filling(model, self._rules)
        report = Machine if options.machine_readable else Human
        is_exclusive = any(node.exclusive for node in cluster.nodes)
        initial, score = Resources(self._start, cluster), self._start.score()
        self._report = report(initial, score, is_exclusive=is_exclusive)

    def _rules_for(self, model: ClusterModel) -> tuple[Rules, bool]:
        """Which groups are open, which nodes count; and whether trying is of no use."""
        options, a, group = self._options, model.resources, np.array(model.group_of)
        bad: set[int] = set(group[a.fails_n1 & ~a.offline].tolist())
        closed = set[int]() if options.accept_existing_errors else set(bad)
        emptied: Bools = np.ones(model.size, dtype=np.bool_)
        if options.independent_groups:
            closed.update(self._stuck)
            emptied &= ~np.isin(group, np.array(self._stuck, dtype=np.int64))
        if options.accept_existing_errors:
            emptied &= ~a.offline
        closed.update(
            index
            for index, each in enumerate(self._cluster.groups)
            if each.alloc_policy is AllocationPolicy.UNALLOCABLE
        )
        is_open = len(closed) < len(self._cluster.groups)
        looks_away = options.accept_existing_errors or (options.independent_groups and is_open)
        is_hopeless = bool(bad) and not looks_away
        rules = Rules(
            closed=frozenset(closed),
            emptied=None if options.no_capacity_checks else np.flatnonzero(emptied).tolist(),
        )
        return rules, is_hopeless

    def _is_stuck(self, model: ClusterModel, group: int) -> bool:
        emptied = members = model.groups[group]
        # What sits on a node that is offline is an existing error.
        if self._options.accept_existing_errors:
            emptied = [node for node in members if not model.rows[node].offline]
        return next(stuck_nodes(model, emptied, members), None) is not None

    def go(self) -> int:
        options, policy, report = self._options, self._cluster.policy, self._report
        if options.verbose > 1 and self._suffix:
            tell(f"Note: Stripping common suffix of '{self._suffix}' from names")
        self._print_nodes("Initial cluster", self._start)
        if options.verbose > 2:
            tell_score(self._start)
        report.say_cluster(len(self._cluster.nodes))
        if options.verbose > 3:
            tell_bad(self._cluster, self._start, self._stuck)
            tell_candidates(self._start, pair=self._is_pair)
        if not self._is_hopeless:
            self._check_candidates()
        largest = [pair.max for pair in policy.minmax]
        if options.tiered_alloc is not None:
            largest = [options.tiered_alloc]
        if not largest:
            raise InvalidRequest("Empty list of specs received from the cluster")
        wanted = [self._demand(spec) for spec in largest]
        report.say_spec("Tiered (initial size)", "TSPEC_INI", wanted[0])
        result = Filled(self._start, {})
        for one in wanted:
            result = self._filled(fill_in_tiers, result.filling, one)
        self._show(result, "Tiered allocation", "tiered")
        report.say_tiered(result, Resources(result.filling, self._cluster))
        one = self._demand(options.standard_alloc or policy.std)
        report.say_spec("Standard (fixed-size)", "SPEC", one)
        result = self._filled(fill, self._start, one)
        self._show(result, "Standard allocation", "standard")
        report.say_standard(result, Resources(result.filling, self._cluster))
        report.say_end()
        return 0

    def _check_candidates(self) -> None:
        if not self._start.has_candidates(pair=self._is_pair):
            what = "Not enough online nodes" if self._is_pair else "No online nodes"
            raise NoCapacity(f"failure during allocation: {what}")

    def _filled(self, way: _Way, start: Filling, one: Instance) -> Filled:
        if self._is_hopeless:
            return Filled(self._start, {Failure.N1: 1})
        limit = self._options.max_length if self._options.max_length >= 0 else None
        return way(start, one, limit)

    def _show(self, result: Filled, title: str, ending: str) -> None:
        """What more was asked for: where each instance went, the nodes, a file."""
        if self._options.verbose > 1:
            tell_map(title, self._cluster, result.filling)
        self._print_nodes(title, result.filling)
        if self._options.save is not None:
            path = Path(f"{self._options.save}.{ending}")
            write(path, format_cluster(self._after(result.filling)), "the cluster")

    def _demand(self, spec: Spec) -> Instance:
        """A running instance of that size; the spec tells the spindles of its one disk only."""
        use, standard = self._options.spindle_use, self._cluster.policy.std.spindle_use
        return Instance(
            name="new",
            template=self._template,
            memory=spec.memory_size,
            vcpus=spec.cpu_count,
            disk=spec.disk_size,
            disks=(spec.disk_size,),
            spindle_use=standard if use is None else use,
            disk_spindles=spec.spindle_use,
        )

    def _after(self, filling: Filling) -> Snapshot:
        """The cluster with what was placed."""
        return settled(
            self._cluster,
            (),
            [
                replace(at_home(one.demand, one.nodes), name=f"new-{number}")
                for number, one in enumerate(filling.placed)
            ],
        )

    def _print_nodes(self, when: str, filling: Filling) -> None:
        if self._options.print_nodes is None:
            return
        after = self._after(filling)
        used = np.bincount(
            [one.nodes[0] for one in filling.placed],
            [one.demand.used_memory for one in filling.placed],
            minlength=len(after.nodes),
        )
        measured = tuple(
            replace(node, free_memory=node.free_memory - int(taken))
            for node, taken in zip(after.nodes, used.tolist(), strict=True)
        )
        model = ClusterModel(replace(after, nodes=measured))
        nodes = nodes_now(model, after, self._suffix, range(model.size))
        table = node_table(nodes, self._options.print_nodes)
        tell(f"\n{when} status:\n{table}\n")


main = partial(run, "hspace", OPTIONS, measure)
