"""``hbal``: find moves that balance a group of nodes, and make them."""

import os
from collections.abc import Iterable, Sequence

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: our products are thin

import numpy as np

from common.errors import InvalidRequest
from coordinator.allocator.balancing.ahead import FIRST_MOVES, LookAhead
from coordinator.allocator.balancing.balance import Balance, Limits, Move
from coordinator.allocator.balancing.straighten import straightened
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.snapshot import Snapshot
from coordinator.htools import hbal_options, source
from coordinator.htools.execute import execute
from coordinator.htools.hbal_report import Report, say, tell
from coordinator.htools.jobsets import job_sets
from coordinator.htools.options import Parsed
from coordinator.htools.program import run
from coordinator.htools.source import common_suffix
from coordinator.htools.tables import show, show_g
from coordinator.iallocator.show import policy

OPTIONS = hbal_options.OPTIONS


def main() -> None:
    """Run the command."""
    run("hbal", OPTIONS, balance)


def balance(options: Parsed) -> int:
    """Load, balance, print, make the moves; returns the exit status."""
    cluster = source.with_offline(source.load(options), options)
    model = ClusterModel(cluster, least_disk=options.min_disk)
    if options.verbosity != 0:
        source.warn_of_missing(cluster)
    if options.verbosity > 1:
        say(f"Loaded cluster tags: {','.join(cluster.tags)}")
        say(f"Loaded cluster ipolicy: {policy(cluster.policy)}")
    say(f"Loaded {len(cluster.nodes)} nodes, {len(cluster.instances)} instances")
    suffix = common_suffix(cluster)
    if suffix and options.verbosity > 1:
        say(f"Note: Stripping common suffix of '{suffix}' from names")
    if not cluster.instances:
        say("Cluster is empty, exiting.")
        return 0
    if options.verbosity > 1:
        _tell_split(cluster)
    group = _chosen_group(cluster, options)
    nodes = [i for i, node in enumerate(cluster.nodes) if node.group == group]
    start = Balance(model, np.array(nodes, dtype=np.int64), _limits(cluster, options))
    report = Report(options, cluster, start)
    report.opening(cluster.groups[group].name)
    if not _is_balanced(start, options, report):
        _balance_group(start, options, cluster, report)
    return 0


def _tell_split(cluster: Snapshot) -> None:
    """Name the instances that stay, since their nodes are not in one group."""
    nodes = cluster.nodes
    split = [i.name for i in cluster.instances if len({nodes[n].group for n in i.homes}) > 1]
    if split:
        tell("Found instances belonging to multiple node groups:")
        for name in split:
            tell(f"  {name}")
        tell("These instances will not be moved.")


def _chosen_group(cluster: Snapshot, options: Parsed) -> int:
    if options.group is None:
        if len(cluster.groups) == 1:
            return 0
        tell("Found multiple node groups:")
        _list_groups(cluster)
        raise InvalidRequest("Aborting.")
    for index, group in enumerate(cluster.groups):
        if options.group in {group.name, group.uuid}:
            return index
    tell(f"Node group {options.group} not found. Node group list is:")
    _list_groups(cluster)
    raise InvalidRequest("Aborting.")


def _list_groups(cluster: Snapshot) -> None:
    for group in cluster.groups:
        tell(f"  {group.name}")


def _limits(cluster: Snapshot, options: Parsed) -> Limits:
    suffix = common_suffix(cluster)

    def full(names: Sequence[str]) -> frozenset[str]:
        return frozenset(
            one.name
            for one in cluster.instances
            if one.name in names or one.name.removesuffix(suffix) in names
        )

    return Limits(
        min_gain=options.min_gain,
        min_gain_limit=options.min_gain_limit,
        evacuate=options.evacuate,
        disk_moves=options.disk_moves,
        instance_moves=options.instance_moves,
        restricted=options.restricted,
        ignore_soft_errors=options.ignore_soft_errors,
        selected=None if options.select is None else full(options.select),
        excluded=full(options.exclude),
    )


def _is_balanced(start: Balance, options: Parsed, report: Report) -> bool:
    """Say the score before, and whether that is good enough."""
    score, optimum = start.score(), start.optimum()
    if options.verbosity > 2:
        report.score("Initial coefficients:", score)
    else:
        say(f"Initial score: {show(score.value)}")
    if score.value - optimum < options.min_score:
        say(f"Cluster is already well balanced (initial score {show_g(score.value)},")
        say(f"optimum score due to N+1 reservations {show_g(optimum)},")
        say(f"minimum score {show_g(options.min_score)}).\nNothing to do, exiting")
        return True
    return False


def _balance_group(start: Balance, options: Parsed, cluster: Snapshot, report: Report) -> None:
    say("Trying to minimize the CV...")
    end = start.fork()
    search = _search(end, options)
    found: Iterable[Move] = search.moves()  # one after the other, so that they are seen early
    if search.first_moves:
        found = list(found)
        found, end = straightened(start, found) or (found, end)
    line, moves = report.move_lines(), []
    for move in found:
        moves.append(move)
        say(line(len(moves), move))
    _say_end(start, end, moves, options, report)
    if options.verbosity > 1 and search.stalled and search.first_moves:
        count, score = search.stalled
        say(f"One step at a time it would be {show(score)}, in {count} moves")
    sets = job_sets(moves)
    if options.first_set:
        sets = sets[:1]
    if options.commands is not None:
        report.commands(sets)
    report.state("balanced", "after", "Final", end, moves)
    if options.verbosity > 3:
        report.totals(end)
    if options.execute:
        _execute(options, cluster, sets)


def _search(balance: Balance, options: Parsed) -> LookAhead:
    first_moves = FIRST_MOVES if options.look_ahead is None else options.look_ahead
    return LookAhead(
        balance,
        first_moves=0 if options.strict else first_moves,
        most=None if options.length < 0 else options.length,
        enough=balance.optimum() + options.min_score,
    )


def _say_end(
    start: Balance, end: Balance, moves: list[Move], options: Parsed, report: Report
) -> None:
    score = end.score()
    if not moves:
        say("No solution found")
    elif options.verbosity > 2:
        report.score("Final coefficients:  ", score)
    else:
        before = start.score().value
        say(f"Cluster score improved from {show(before)} to {show(score.value)}")
    if options.verbosity > 0:
        say(f"Solution length={len(moves)}")


def _execute(options: Parsed, cluster: Snapshot, sets: list[list[Move]]) -> None:
    if options.luxi is None:
        raise InvalidRequest("hbal: Execution of commands possible only on LUXI")
    execute(options.luxi, cluster, sets, reason=options.reason or "", priority=options.priority)


if __name__ == "__main__":
    main()
