"""What ``hbal`` prints: how a group stands, the moves, and the commands that make them."""

from collections.abc import Callable, Sequence

from coordinator.allocator.arithmetic import ratio
from coordinator.allocator.balancing.balance import Balance, Move
from coordinator.allocator.model.score import Score
from coordinator.allocator.snapshot import NOWHERE, Snapshot
from coordinator.htools.jobsets import letters, script
from coordinator.htools.options import Parsed
from coordinator.htools.output import say, tell
from coordinator.htools.saving import save_cluster, tell_commands
from coordinator.htools.tables import instance_table, node_table, score_table, show
from coordinator.htools.view import instances_on, moved, nodes_now
from coordinator.iallocator.names import common_suffix


class Report:
    """Tells of one group while it is balanced."""

    def __init__(self, options: Parsed, cluster: Snapshot, start: Balance) -> None:
        """Tell of the group of ``start``, the state before the first move."""
        self._options, self._cluster, self._start = options, cluster, start
        self._suffix = common_suffix(cluster)
        self._members = start.state.instances.tolist()
        self._nodes: list[int] = start.state.nodes.tolist()

    def alias(self, name: str) -> str:
        """What a node or an instance is called."""
        return name.removesuffix(self._suffix)

    def opening(self, group: str) -> None:
        """Say how large the group is, and what is wrong with it."""
        say(f"Group size {len(self._nodes)} nodes, {len(self._members)} instances")
        say(f"Selected node group: {group}")
        self._check()
        self.state("original", "before", "Initial", self._start, [])

    def _check(self) -> None:
        state, options = self._start.state, self._options
        bad = state.model.failing(self._nodes)
        if options.verbose > 0:
            # Also of instances that belong to another group, and only have their secondary here.
            spoilt = instances_on(state.model, bad)
            say(f"Initial check done: {len(bad)} bad nodes, {len(spoilt)} bad instances.")
        if bad:
            say(
                "Cluster is not N+1 happy, continuing but no guarantee that the cluster will end"
                " N+1 happy."
            )
        rows = [state.model.rows[node] for node in self._nodes if node not in bad]
        over = [
            row.spindles > row.spindle_limit or ratio(row.cpus, row.total_cpus) > row.cpu_ratio
            for row in rows
        ]
        if any(over):
            say(f"The cluster contains {sum(over)} policy-violating nodes.")
            say(
                "Continuing, ignoring soft errors."
                if options.ignore_soft_errors
                else "Continuing, but the set of moves might be too restricted; consider using"
                " the --ignore-soft-errors option."
            )

    def score(self, when: str, score: Score) -> None:
        """Say what each term amounts to."""
        table = score_table(score.values())
        say(f"{when} overall {show(score.value)}\n{table}")

    def move_lines(self) -> Callable[[int, Move], str]:
        """Return what makes the line of a move, given its number."""
        cluster, nodes = self._cluster, self._cluster.nodes
        names = [self.alias(cluster.instances[i].name) for i in self._members]
        width = max(map(len, names), default=0)
        pair_width = 2 * max(len(self.alias(nodes[n].name)) for n in self._nodes) + 1

        def pair(homes: tuple[int, int]) -> str:
            return ":".join(self.alias(nodes[n].name) for n in homes if n != NOWHERE)

        def line(number: int, move: Move) -> str:
            name = self.alias(cluster.instances[move.instance].name)
            target = self.alias(nodes[move.target].name)
            return (
                f"  {number:3d}. {name:<{width}} {pair(move.before):<{pair_width}}"
                f" => {pair(move.after):<{pair_width}} {show(move.score):>12}"
                f" a={letters(move, target)}"
            )

        return line

    def commands(self, sets: Sequence[Sequence[Move]]) -> None:
        """List the commands that make the moves, or write them to a file.

        Raises:
            InvalidRequest: the file cannot be written.
        """
        text = script(sets, self._cluster, self.alias)
        title = "Commands to run to reach the above solution:"
        tell_commands(text, self._options.print_commands, title, "hbal")

    def state(
        self, ending: str, time: str, title: str, balance: Balance, moves: Sequence[Move]
    ) -> None:
        """Save and show the cluster after some moves, as far as that is asked for."""
        options = self._options
        if options.save is not None:
            now = moved(self._cluster, moves)
            save_cluster(now, options.save, ending, f"{time} balancing")
        if options.print_instances:
            now = moved(self._cluster, moves)
            table = instance_table([now.instances[i] for i in self._members], now)
            tell(f"\n{title} instance map:\n{table}")
        if options.print_nodes is not None:
            model = balance.state.settled([move.instance for move in moves])
            rows = nodes_now(model, self._cluster, self._suffix, self._nodes, moves)
            table = node_table(rows, options.print_nodes)
            tell(f"\n{title} cluster status:\n{table}\n")

    def totals(self, end: Balance) -> None:
        """Say how much memory and disk is free, before and after."""
        for when, balance in (("Original:", self._start), ("Final:   ", end)):
            resources = balance.state.resources
            say(f"{when} mem={int(resources.memory.sum())} disk={int(resources.disk.sum())}")
