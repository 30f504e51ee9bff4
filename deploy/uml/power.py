"""Several nodes at once, from power-on until they are up, and down again in order."""

import time
from collections.abc import Sequence
from subprocess import Popen

from deploy.uml.command import Trouble, begin, end
from deploy.uml.node import Node

BOOT_S = 120.0
ORDERLY_S = 30.0  # for a node to shut down
POLL_S = 0.1
LOST_CONNECTION = 255  # ssh's exit code for its own failures, ssh(1)


def wait_until_up(nodes: Sequence[Node], seconds: float = BOOT_S) -> None:
    """Return when all nodes have started all that they start.

    Raises:
        Trouble: one ended, is frozen, or is not up in time; with the end of its console.
    """
    deadline = time.monotonic() + seconds
    questions: dict[Node, Popen[str]] = {}
    try:
        left = list(nodes)
        while left := [node for node in left if not _is_up(node, questions)]:
            for node in left:
                if node.state == "frozen":
                    node.check_on()
                if node.pid is None:
                    raise Trouble(f"{node.name} ended while it started. {node.last_words()}")
                if time.monotonic() > deadline:
                    raise Trouble(f"{node.name} is not up in {seconds:g} s. {node.last_words()}")
            time.sleep(POLL_S)
    finally:
        for question in questions.values():
            end(question)


def _is_up(node: Node, questions: dict[Node, Popen[str]]) -> bool:
    """Ask a node; look for its answer when called again."""
    if node not in questions:
        questions[node] = begin((*node.ssh(), "systemctl is-system-running --wait"))
    code = questions[node].poll()
    if code is None:
        return False
    end(questions.pop(node))
    return code != LOST_CONNECTION


def shut_down(nodes: Sequence[Node], seconds: float = ORDERLY_S) -> None:
    """Have the nodes end themselves in order; end those that do not, and the frozen ones."""
    deadline = time.monotonic() + seconds
    asked = [begin((*node.ssh(), "systemctl poweroff")) for node in nodes if node.state == "on"]
    try:
        while any(node.state == "on" for node in nodes) and time.monotonic() < deadline:
            time.sleep(POLL_S)
    finally:
        for question in asked:
            end(question)
    for node in nodes:
        node.power_off()
