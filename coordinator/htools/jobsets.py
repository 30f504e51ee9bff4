"""A balancing's moves as jobs: what may run side by side, and the commands of each."""

from collections.abc import Callable, Mapping, Sequence

from coordinator.allocator.balancing.balance import Move
from coordinator.allocator.balancing.moves import StepKind
from coordinator.allocator.snapshot import IS_RUNNING, NOWHERE, Snapshot

Alias = Callable[[str], str]


def job_sets(moves: Sequence[Move]) -> list[list[Move]]:
    """Group moves so that no two of a set share a node; the sets run one after the other.

    Sets are filled from the last move to the first, so that early ones tend to be smaller.
    """
    sets: list[list[Move]] = []
    used: set[int] = set()
    for move in reversed(moves):
        nodes = set(move.before) | set(move.after)
        nodes.discard(NOWHERE)
        if sets and not nodes & used:
            sets[0].insert(0, move)
            used |= nodes
        else:
            sets.insert(0, [move])
            used = nodes
    return sets


def letters(move: Move, target: str) -> str:
    """The short form of a move: ``f`` for a failover, ``r`` for a replaced secondary."""
    steps = move.kind.steps
    return " ".join("f" if step is StepKind.SWITCH else f"{step.value}:{target}" for step in steps)


def commands(move: Move, cluster: Snapshot, alias: Alias) -> list[str]:
    """What an operator would type for one move."""
    instance = cluster.instances[move.instance]
    name, target = alias(instance.name), alias(cluster.nodes[move.target].name)
    verb = "migrate" if instance.status in IS_RUNNING else "failover"
    words = {
        StepKind.SWITCH: f"{verb} -f {name}",
        StepKind.SWITCH_TO: f"{verb} -f -n {target} {name}",
        StepKind.REPLACE: f"replace-disks -n {target} {name}",
    }
    return [f"gnt-instance {words[step]}" for step in move.kind.steps]


def script(sets: Sequence[Sequence[Move]], cluster: Snapshot, alias: Alias) -> str:
    """All commands, with a ``check`` before each job where a stop may be asked for."""
    lines: list[str] = []
    for at, jobs in enumerate(sets, 1):
        lines += ["", f"echo jobset {at}, {len(jobs)} jobs"]
        for number, move in enumerate(jobs, 1):
            lines += [f"  echo job {at}/{number}", "  check"]
            lines += [f"  {command}" for command in commands(move, cluster, alias)]
    return "".join(f"{line}\n" for line in lines)


_VERBS = {
    "OP_INSTANCE_MIGRATE": "migrate",
    "OP_INSTANCE_FAILOVER": "fail over",
    "OP_INSTANCE_REPLACE_DISKS": "move the secondary of",
}


def describe(job: Sequence[Mapping[str, object]]) -> str:
    """What a job's opcodes do, to be read after “to”."""
    return ", then ".join(map(_described, job))


def _described(opcode: Mapping[str, object]) -> str:
    operation = str(opcode.get("OP_ID", ""))
    words = [_VERBS.get(operation) or operation.removeprefix("OP_").lower().replace("_", " ")]
    subject = opcode.get("instance_name") or opcode.get("node_name")
    target = opcode.get("target_node") or opcode.get("remote_node")
    words += [str(subject)] if subject else []
    words += [f"to {target}"] if target else []
    return " ".join(words)
