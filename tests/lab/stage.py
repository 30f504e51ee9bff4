"""What the stories do again and again."""

import logging
import os
import subprocess
import time
from collections.abc import Callable

import pytest

from deploy.uml import cluster
from deploy.uml.command import Trouble
from deploy.uml.lab import Lab
from deploy.uml.node import Node

PATIENCE_S = 240.0  # whatever else the machine does
POLL_S = 0.5

log = logging.getLogger(__name__)

on_request = pytest.mark.skipif(
    "GANTRY_LAB_ALL" not in os.environ, reason="It takes minutes; GANTRY_LAB_ALL=1 tells it, too."
)


class Stage:
    """Three nodes; alpha is master unless a story says otherwise."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.ruined_by = ""  # the story after which the lab was not healthy any more
        self.nodes = lab.nodes()
        self.alpha, self.beta, self.gamma = self.nodes

    def power_on(self) -> None:
        """Return when all nodes are up."""
        self.lab.up(len(self.nodes), log.info)

    def start(self, node: Node) -> None:
        """Return when a node is up again; others stay off."""
        self.lab.start(node, log.info)

    def verify(self) -> str:
        """Return what ``gnt-cluster verify`` says on alpha, content or not."""
        return said(self.alpha, "gnt-cluster verify")

    def restore(self) -> None:
        """Have all nodes on, and alpha the master of a cluster that is content."""
        if all(node.state == "on" for node in self.nodes) and self._is_content():
            return  # as after most stories
        self.power_on()
        if master_of(self.beta) != "alpha":
            until(lambda: "exit 0" in said(self.alpha, "gnt-cluster master-failover"), "alpha")
        self.alpha.run("systemctl start gantry-coordinator")
        until(self._is_content, "a clean gnt-cluster verify")

    def log_journals(self) -> None:
        """Write down what the daemons of each node that can be asked have said last."""
        for node in self.nodes:
            if node.state == "on":
                said(node, "journalctl --boot --no-pager --no-hostname -n 30 -u 'gantry-*'")

    def _is_content(self) -> bool:
        try:
            cluster.check_clean(self.alpha)
        except Trouble as error:
            log.info("%s", error)
            return False
        return True


def said(node: Node, line: str, *, seconds: float = PATIENCE_S) -> str:
    """Return all that a command printed on a node, whatever its end; the last line is its code."""
    done = subprocess.run(  # noqa: TID251 -- there is no loop to block here
        (*node.shell(), f"{line}; echo exit $?"),
        capture_output=True, text=True, timeout=seconds, check=False,
    )  # fmt: skip
    text = done.stdout + done.stderr
    log.info("%s# %s\n%s", node.name, line, text)
    return text


def master_of(node: Node) -> str:
    return node.run("gnt-cluster getmaster").strip()


def until(holds: Callable[[], bool], what: str, seconds: float = PATIENCE_S) -> None:
    """Poll until something holds.

    Raises:
        AssertionError: it does not in time.
    """
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise AssertionError(f"Waited {seconds:g} s in vain for {what}.")
        time.sleep(POLL_S)  # noqa: TID251 -- real nodes, real time


def answers(node: Node, line: str) -> bool:
    """Tell whether a command succeeds on a node."""
    try:
        node.run(line, timeout_s=60)
    except Trouble:
        return False
    return True


def main_pid(node: Node, unit: str) -> int:
    return int(node.run(f"systemctl show --property MainPID --value {unit}"))
