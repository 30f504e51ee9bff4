"""``hbal``: find moves that balance a group of nodes, and make them."""

import os
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: our products are thin

import numpy as np

from common.errors import InvalidRequest
from coordinator.allocator.arrays import Ints
from coordinator.allocator.balance import Balance, Limits, Move
from coordinator.allocator.books import Opening, open_books
from coordinator.allocator.inventory import NOWHERE, Inventory
from coordinator.htools import source
from coordinator.htools.execute import execute
from coordinator.htools.jobsets import SCRIPT_HEADER, job_sets, letters, script
from coordinator.htools.options import Option, Parsed, Takes, number, run
from coordinator.htools.source import common_suffix
from coordinator.htools.tables import (
    instance_table,
    node_table,
    policy_text,
    score_table,
    show,
    show_g,
)
from coordinator.htools.text import format_cluster
from coordinator.htools.view import moved, nodes_now

PRINT_INSTANCES = Option(
    key="print_instances", name="print-instances", default=False,
    help="show where every instance ends up, on standard error",
)  # fmt: skip

OPTIONS = (
    source.PRINT_NODES,
    PRINT_INSTANCES,
    Option(
        key="commands", name="print-commands", letter="C", argument="FILE", takes=Takes.PERHAPS,
        without="",
        help="list the commands that make the moves; with FILE, write them there as a script",
    ),
    source.TEXT,
    Option(
        key="evacuate", name="evac-mode", letter="E", default=False,
        help="only empty nodes that are offline or drained",
    ),
    Option(
        key="restricted", name="restricted-migration", default=False,
        help="never move a primary onto a new node; when emptying, migrate off drained nodes only",
    ),
    source.LUXI,
    Option(
        key="execute", name="exec", letter="X", default=False,
        help="make the moves, as jobs; needs -L",
    ),
    Option(
        key="first_set", name="first-job-group", default=False,
        help="make only the first set of moves that can run side by side",
    ),
    Option(
        key="reason", name="reason", argument="REASON", takes=Takes.SOMETHING,
        help="why, for the trail of the jobs",
    ),
    source.GROUP,
    Option(
        key="length", name="max-length", letter="l", argument="N", takes=Takes.SOMETHING,
        read=number("max solution length", int), default=-1,
        help="stop after N moves",
    ),
    source.VERBOSE,
    source.QUIET,
    source.OFFLINE,
    source.STATIC_MEMORY,
    Option(
        key="min_score", name="min-score", letter="e", argument="EPSILON", takes=Takes.SOMETHING,
        read=number("epsilon", float), default=1e-9,
        help="stop when the score is this close to the best possible one",
    ),
    source.MAX_CPU,
    source.MIN_DISK,
    Option(
        key="min_gain", name="min-gain", letter="g", argument="DELTA", takes=Takes.SOMETHING,
        read=number("min gain", float), default=0.01,
        help="stop when a move gains less than this",
    ),
    Option(
        key="min_gain_limit", name="min-gain-limit", argument="SCORE", takes=Takes.SOMETHING,
        read=number("min gain limit", float), default=0.1,
        help="heed --min-gain only once the score is below this",
    ),
    Option(
        key="disk_moves", name="no-disk-moves", default=True, without=False,
        help="move no disks: only migrate and fail over",
    ),
    source.SELECT,
    Option(
        key="instance_moves", name="no-instance-moves", default=True, without=False,
        help="move no primaries: only replace secondaries",
    ),
    Option(
        key="ignore_soft_errors", name="ignore-soft-errors", default=False,
        help="let moves break limits that may be broken",
    ),
    source.DYNU,
    source.IGNORE_DYNU,
    source.MOND_DATA,
    source.EXCLUSION,
    source.EXCLUDE,
    source.SAVE,
    Option(
        key="priority", name="priority", argument="PRIO", takes=Takes.SOMETHING,
        help="of the jobs: low, normal or high",
    ),
)  # fmt: skip


def main() -> None:
    """Run the command."""
    run("hbal", OPTIONS, balance)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def tell(text: str) -> None:
    """On stderr, apart from the results."""
    sys.stdout.flush()
    sys.stderr.write(f"{text}\n")


def balance(options: Parsed) -> int:
    """Load, balance, print; returns the exit status."""
    cluster = source.with_offline(source.load(options), options)
    opening = open_books(cluster, least_disk=options.min_disk)
    if options.verbosity > 0:
        source.warn_of_missing(cluster, opening)
    if options.verbosity > 1:
        say(f"Loaded cluster tags: {','.join(cluster.tags)}")
        say(f"Loaded cluster ipolicy: {policy_text(cluster.policy)}")
    say(f"Loaded {len(cluster.nodes)} nodes, {len(cluster.instances)} instances")
    suffix = common_suffix(cluster)
    if suffix and options.verbosity > 1:
        say(f"Note: Stripping common suffix of '{suffix}' from names")
    if not cluster.instances:
        say("Cluster is empty, exiting.")
        return 0
    group = _chosen_group(cluster, options)
    nodes = np.array(
        [i for i, node in enumerate(cluster.nodes) if node.group == group], dtype=np.int64
    )
    return _Run(options, cluster, opening, group, nodes).go()


def _chosen_group(cluster: Inventory, options: Parsed) -> int:
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


def _list_groups(cluster: Inventory) -> None:
    for group in cluster.groups:
        tell(f"  {group.name}")


class _Run:
    """One group balanced and reported."""

    def __init__(
        self,
        options: Parsed,
        cluster: Inventory,
        opening: Opening,
        group: int,
        nodes: Ints,
    ) -> None:
        self.options, self.cluster, self.group, self.nodes = options, cluster, group, nodes
        suffix = common_suffix(cluster)
        self.alias: Callable[[str], str] = lambda name: name.removesuffix(suffix)
        self.balance = Balance(
            opening,
            nodes,
            Limits(
                min_gain=options.min_gain,
                min_gain_limit=options.min_gain_limit,
                evacuate=options.evacuate,
                disk_moves=options.disk_moves,
                instance_moves=options.instance_moves,
                restricted=options.restricted,
                ignore_soft_errors=options.ignore_soft_errors,
                selected=None if options.select is None else self._full(options.select),
                excluded=self._full(options.exclude),
            ),
        )
        self.members = self.balance.board.instances.tolist()

    def _full(self, names: tuple[str, ...]) -> frozenset[str]:
        return frozenset(
            one.name
            for one in self.cluster.instances
            if one.name in names or self.alias(one.name) in names
        )

    def go(self) -> int:
        options = self.options
        say(f"Group size {len(self.nodes)} nodes, {len(self.members)} instances")
        say(f"Selected node group: {self.cluster.groups[self.group].name}")
        self._check()
        self._save("original", "before", [])
        self._print_instances("Initial", [])
        self._print_nodes("Initial", [])
        score = self.balance.score()
        optimum = self.balance.optimum()
        if options.verbosity > 2:
            say(
                f"Initial coefficients: overall {show(score.value)}\n"
                + score_table(score.values()).rstrip("\n")
            )
        else:
            say(f"Initial score: {show(score.value)}")
        if score.value - optimum < options.min_score:
            say(f"Cluster is already well balanced (initial score {show_g(score.value)},")
            say(f"optimum score due to N+1 reservations {show_g(optimum)},")
            say(f"minimum score {show_g(options.min_score)}).\nNothing to do, exiting")
            return 0
        say("Trying to minimize the CV...")
        moves = self._moves(score.value, optimum)
        self._finish(score.value, moves)
        return 0

    def _check(self) -> None:
        board, options = self.balance.board, self.options
        books = board.books
        bad = ~books.offline & books.fails_n1
        count = int(np.count_nonzero(bad))
        # Also of instances that belong to another group, and only have their secondary here.
        opening, spoiled = board.opening, board.nodes[bad]
        touched = np.isin(opening.primary, spoiled) | np.isin(opening.secondary, spoiled)
        touched &= opening.demands.count > 0
        if options.verbosity > 0:
            spoilt = int(np.count_nonzero(touched))
            say(f"Initial check done: {count} bad nodes, {spoilt} bad instances.")
        if count:
            say(
                "Cluster is not N+1 happy, continuing but no guarantee that the cluster will end"
                " N+1 happy."
            )
        with np.errstate(divide="ignore", invalid="ignore"):
            over = (books.spindles > books.spindle_limit) | (
                books.cpus / books.total_cpus > books.cpu_ratio
            )
        violating = int(np.count_nonzero(over & ~bad))
        if violating:
            say(f"The cluster contains {violating} policy-violating nodes.")
            say(
                "Continuing, ignoring soft errors."
                if options.ignore_soft_errors
                else "Continuing, but the set of moves might be too restricted; consider using"
                " the --ignore-soft-errors option."
            )

    def _moves(self, initial: float, optimum: float) -> list[Move]:
        options, nodes = self.options, self.cluster.nodes
        members = [self.cluster.instances[i] for i in self.members]
        instance_width = max((len(self.alias(one.name)) for one in members), default=0)
        node_width = max(len(self.alias(nodes[n].name)) for n in self.nodes.tolist())
        pair_width = 2 * node_width + 1

        def pair(homes: tuple[int, int]) -> str:
            return ":".join(self.alias(nodes[n].name) for n in homes if n != NOWHERE)

        moves: list[Move] = []
        limit = options.length if options.length >= 0 else None
        value = initial
        if value <= optimum + options.min_score or limit == 0:
            return moves
        for move in islice(self.balance.moves(), limit):
            moves.append(move)
            name = self.alias(self.cluster.instances[move.instance].name)
            target = self.alias(nodes[move.target].name)
            say(
                f"  {len(moves):3d}. {name:<{instance_width}} {pair(move.before):<{pair_width}}"
                f" => {pair(move.after):<{pair_width}} {show(move.score):>12}"
                f" a={letters(move, target)}"
            )
            if not move.score > optimum + options.min_score:
                break
        return moves

    def _finish(self, initial: float, moves: list[Move]) -> None:
        options = self.options
        score = self.balance.score()
        improved = f"Cluster score improved from {show(initial)} to {show(score.value)}"
        if options.verbosity > 2 and moves:
            say(
                f"Final coefficients:   overall {show(score.value)}\n"
                + score_table(score.values()).rstrip("\n")
            )
        elif moves:
            say(improved)
        else:
            say("No solution found")
        if options.verbosity > 0:
            say(f"Solution length={len(moves)}")
        sets = job_sets(moves)
        if options.first_set:
            sets = sets[:1]
        if options.commands is not None:
            self._print_commands(script(sets, self.cluster, self.alias))
        self._save("balanced", "after", moves)
        self._print_instances("Final", moves)
        self._print_nodes("Final", moves)
        if options.verbosity > 3:
            self._print_totals()
        if options.execute:
            self._execute(sets)

    def _print_commands(self, text: str) -> None:
        if not self.options.commands:
            say("\nCommands to run to reach the above solution:")
            for line in text.splitlines():
                if line != "  check":
                    say(f"  {line}")
            return
        path = Path(self.options.commands)
        try:
            path.write_text(SCRIPT_HEADER + text, encoding="utf-8")
        except OSError as error:
            raise InvalidRequest(
                f"Cannot write the commands to {path}: {error.strerror}."
            ) from error
        say(f"The commands have been written to file '{path}'")

    def _save(self, ending: str, when: str, moves: list[Move]) -> None:
        if self.options.save is None:
            return
        path = Path(f"{self.options.save}.{ending}")
        now = moved(self.cluster, moves)
        try:
            path.write_text(format_cluster(now), encoding="utf-8")
        except OSError as error:
            raise InvalidRequest(f"Cannot save the cluster to {path}: {error.strerror}.") from error
        tell(f"The cluster state {when} balancing has been written to file '{path}'")

    def _print_instances(self, when: str, moves: list[Move]) -> None:
        if self.options.print_instances:
            now = moved(self.cluster, moves)
            some = [now.instances[i] for i in self.members]
            tell(f"\n{when} instance map:")
            tell(instance_table(some, now).rstrip("\n"))

    def _print_nodes(self, when: str, moves: list[Move]) -> None:
        if self.options.print_nodes is not None:
            now = nodes_now(self.balance.board, moved(self.cluster, moves), self.alias)
            tell(f"\n{when} cluster status:")
            tell(node_table(now, range(len(self.nodes)), self.options.print_nodes))

    def _print_totals(self) -> None:
        """Free memory and disk, before and after; only disk changes places, so neither does."""
        books, start = self.balance.board.books, self.balance.board.opening.books.at(self.nodes)
        before, after = ((int(b.memory.sum()), int(b.disk.sum())) for b in (start, books))
        for when, (memory, disk) in (("Original:", before), ("Final:   ", after)):
            say(f"{when} mem={memory} disk={disk}")

    def _execute(self, sets: list[list[Move]]) -> None:
        if self.options.luxi is None:
            raise InvalidRequest("hbal: Execution of commands possible only on LUXI")
        execute(self.options.luxi, self.cluster, sets, reason=self.options.reason or "")


if __name__ == "__main__":
    main()
