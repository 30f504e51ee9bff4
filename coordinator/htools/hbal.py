"""``hbal``: find moves that balance a group of nodes, and make them."""

from collections.abc import Iterable
from functools import partial

import numpy as np

from common.errors import InvalidRequest
from coordinator.allocator.balancing.ahead import FIRST_MOVES, LookAhead
from coordinator.allocator.balancing.balance import Balance, Move
from coordinator.allocator.balancing.straighten import straightened
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.snapshot import Snapshot
from coordinator.htools import source
from coordinator.htools.catalogue import named
from coordinator.htools.execute import jobs_of, run_jobs
from coordinator.htools.hbal_report import Report
from coordinator.htools.jobsets import job_sets
from coordinator.htools.limits import limits_of
from coordinator.htools.options import Parsed
from coordinator.htools.output import say, tell
from coordinator.htools.program import run
from coordinator.htools.tables import show, show_g
from coordinator.htools.view import split_instances
from coordinator.iallocator.names import common_suffix, groups_named
from coordinator.iallocator.show import policy

OPTIONS = named(
    "text-data luxi master rapi-ca ialloc-src static-kvm-node-memory look-ahead strict-compat"
    " evac-mode restricted-migration group max-length offline min-score max-cpu min-disk min-gain"
    " min-gain-limit no-disk-moves no-instance-moves select-instances exclude-instances"
    " exclusion-tags ignore-soft-errors dynu-file ignore-dynu mond mond-data mond-xen"
    " exit-on-missing-mond-data print-nodes print-instances print-commands save verbose quiet"
    " exec first-job-group reason priority"
)


def balance(options: Parsed) -> int:
    """Load, balance, print, make the moves; returns the exit status."""
    cluster = source.with_offline(source.load(options), options)
    model = ClusterModel(cluster, least_disk=options.min_disk)
    if options.verbose != 0:
        source.warn_of_missing(cluster)
    if options.verbose > 1:
        say(f"Loaded cluster tags: {','.join(cluster.tags)}")
        say(f"Loaded cluster ipolicy: {policy(cluster.policy)}")
    say(f"Loaded {len(cluster.nodes)} nodes, {len(cluster.instances)} instances")
    suffix = common_suffix(cluster)
    if suffix and options.verbose > 1:
        say(f"Note: Stripping common suffix of '{suffix}' from names")
    if not cluster.instances:
        say("Cluster is empty, exiting.")
        return 0
    if options.verbose > 1 and (split := split_instances(cluster)):
        tell("\n  ".join(["Found instances belonging to multiple node groups:", *split]))
        tell("These instances will not be moved.")
    group = _chosen_group(cluster, options)
    nodes = [i for i, node in enumerate(cluster.nodes) if node.group == group]
    start = Balance(model, np.array(nodes, dtype=np.int64), limits_of(cluster, options))
    report = Report(options, cluster, start)
    report.opening(cluster.groups[group].name)
    if not _is_balanced(start, options, report):
        _balance_group(start, options, cluster, report)
    return 0


def _chosen_group(cluster: Snapshot, options: Parsed) -> int:
    if options.group is None:
        if len(cluster.groups) == 1:
            return 0
        tell("Found multiple node groups:")
    elif found := groups_named(options.group, cluster.groups):
        return found[0]
    else:
        tell(f"Node group {options.group} not found. Node group list is:")
    for group in cluster.groups:
        tell(f"  {group.name}")
    raise InvalidRequest("Aborting.")


def _is_balanced(start: Balance, options: Parsed, report: Report) -> bool:
    """Say the score before, and whether that is good enough."""
    score, optimum = start.score(), start.optimum()
    if options.verbose > 2:
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
    if options.verbose > 1 and search.stalled and search.first_moves:
        count, score = search.stalled
        say(f"One step at a time it would be {show(score)}, in {count} moves")
    sets = job_sets(moves)
    if options.first_job_group:
        sets = sets[:1]
    if options.print_commands is not None:
        report.commands(sets)
    report.state("balanced", "after", "Final", end, moves)
    if options.verbose > 3:
        report.totals(end)
    if options.exec:
        jobs, why = jobs_of(sets, cluster), options.reason or ""
        run_jobs(options.luxi, jobs, program="hbal", reason=why, priority=options.priority)


def _search(balance: Balance, options: Parsed) -> LookAhead:
    first_moves = FIRST_MOVES if options.look_ahead is None else options.look_ahead
    return LookAhead(
        balance,
        first_moves=0 if options.strict_compat else first_moves,
        most=None if options.max_length < 0 else options.max_length,
        enough=balance.optimum() + options.min_score,
    )


def _say_end(
    start: Balance, end: Balance, moves: list[Move], options: Parsed, report: Report
) -> None:
    score = end.score()
    if not moves:
        say("No solution found")
    elif options.verbose > 2:
        report.score("Final coefficients:  ", score)
    else:
        before = start.score().value
        say(f"Cluster score improved from {show(before)} to {show(score.value)}")
    if options.verbose > 0:
        say(f"Solution length={len(moves)}")


main = partial(run, "hbal", OPTIONS, balance)
