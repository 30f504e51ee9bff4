"""Nodes that have been silent for long: they are switched off and marked offline, if that is safe.

Whether most nodes obey this master, and whether the node is silent still, is looked at by the job.
"""

from coordinator.watcher.conversation import (
    Round,
    Told,
    Weight,
    asked,
    order,
    ordered,
    unfinished_or_since,
)
from coordinator.watcher.decide import spoken

SILENCE_S = 300.0  # after which a node is thought to be dead; a reboot takes less
AGAIN_S = 900.0  # between two attempts to switch one off
IN_SERVICE = ["==", "offline", False]
_FENCE = "OP_NODE_FENCE"


def fence_silent(now: float) -> Round:
    """Have the one node that is dead switched off; where several are silent, people have to look.

    A switch or a whole room is then more likely than as many dead machines, and what is switched
    off in vain has its guests killed. Nodes of all groups count: what they share is not known.
    """
    fields = ["name", "silent_for", "drained", "ndp/oob_program"]
    answer = yield from asked("node", fields, IN_SERVICE)
    silent = [(name, *others) for name, *others in answer if others[0]]
    # Somebody is at work on a node that is drained, and may have switched it off.
    dead = [name for name, for_s, drained, _ in silent if for_s >= SILENCE_S and not drained]
    if not dead:
        return []
    if len(silent) > 1:
        names = ", ".join(name for name, *_ in silent)
        text = (
            f"Nodes {names} are silent at the same time, so none of them is switched off: look "
            "at the network, and mark those offline that are dead."
        )
        return [Told(Weight.WARNING, text)]
    ((name, for_s, _, program),) = silent
    if not program:
        text = (
            f"Node {name} has been silent for {spoken(for_s)}. Nothing switches its power "
            "(oob_program), so it is not marked offline: do so yourself if it is dead."
        )
        return [Told(Weight.WARNING, text)]
    lately = unfinished_or_since(now - AGAIN_S)
    jobs = yield from asked("job", ["ops"], lately)
    if any(op["OP_ID"] == _FENCE and op["node_name"] == name for (ops,) in jobs for op in ops):
        return []
    why = f"has been silent for {spoken(for_s)}"
    ((accepted, told),) = yield from ordered([order(_FENCE, "node_name", name, why, now)])
    text = f"job {told} switches it off." if accepted else f"it cannot be switched off: {told}"
    return [Told(Weight.WARNING, f"Node {name} {why}; {text}")]
