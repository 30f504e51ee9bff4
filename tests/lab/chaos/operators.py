"""What an operator does: orders whoever is master, gives up what is dead, puts in order."""

import re
import shlex
import time
from collections.abc import Callable, Sequence

from deploy.uml.command import Trouble
from deploy.uml.lab import Lab
from deploy.uml.node import Node

ORDER_S = 240.0
POLL_S = 2.0
JOBS_S = 300.0  # for what was ordered to end, once nothing is broken any more
CONTENT_S = 240.0  # for the cluster to be in order again
ANSWER_S = 30.0

ANSWERS = "gnt-cluster master-ping"  # succeeds on the master
NAMES = "gnt-cluster getmaster"

NO_MIRROR = "-"
MENDED_BY = {  # what verify names for it
    "parted": "gnt-instance activate-disks",
    "degraded": "gnt-instance replace-disks --auto",
}

Say = Callable[[str], None]


class Unsettled(Exception):
    """In peace something is not as it should be; a sentence."""


class Operator:
    def __init__(self, lab: Lab, say: Say) -> None:
        self._lab, self._say = lab, say

    def master(self) -> Node | None:
        """Return who is master; None if nobody is, or takes itself for it."""
        on = [node.name for node in self._lab.nodes() if node.state == "on"]
        name = find_master(on, lambda name, line: self._tell(self._lab.node(name), line))
        return self._lab.node(name) if name else None

    def order(self, line: str) -> str:
        """Give an order to the master; return how it ended, in a few words."""
        began = time.monotonic()
        master = self.master()
        if master is None:
            return "nobody is master"
        done, told = self._tell(master, line, ORDER_S)
        took = time.monotonic() - began
        return f"done in {took:.0f} s" if done else f"not done, {took:.0f} s: {told}"

    def instances(self) -> list[str]:
        """Return the names of all instances.

        Raises:
            Unsettled: nobody tells.
        """
        master = self._ensure_master()
        return master.run("gnt-instance list --no-headers -o name").split()

    def give_up(self, name: str) -> None:
        """Say that a node is dead, which is true, and have its instances fail over."""
        lost = self._lab.node(name)
        master = self.master()
        if master is None:
            others = [each for each in self._lab.nodes() if each.state == "on"]
            for other in others[:1]:
                self._do(other, "gnt-cluster master-failover")
        self._order(f"gnt-node modify --offline=yes --force {lost.name}")
        self._order(f"gnt-node failover --force {lost.name}")

    def settle(self) -> Node:
        """With all nodes up, have one master, no job under way, and everything in order.

        Raises:
            Unsettled: in vain; says what is wrong.
        """
        master = self._ensure_master()
        self._bring_back(master)
        self._await_jobs(master)
        end = time.monotonic() + CONTENT_S
        while wrong := self._put_in_order(master):
            if time.monotonic() > end:
                raise Unsettled(f"The cluster does not get in order in {CONTENT_S:g} s:\n{wrong}")
            time.sleep(POLL_S)
        self._await_jobs(master)
        return master

    def _ensure_master(self) -> Node:
        end = time.monotonic() + JOBS_S
        while time.monotonic() < end:
            if (master := self.master()) is not None:
                done, _ = self._tell(master, "gnt-job list --running --no-headers -o id")
                if done:
                    return master
            for node in self._lab.nodes():
                self._tell(node, "systemctl reset-failed; systemctl start gantry-coordinator")
            time.sleep(POLL_S)
        raise Unsettled(f"With all nodes up, nobody is master after {JOBS_S:g} s.")

    def _bring_back(self, master: Node) -> None:
        _, text = self._tell(master, "gnt-node list --no-headers --separator=, -o name,role")
        for name, role in (line.split(",") for line in text.splitlines()):
            if role == "O":
                self._order(f"gnt-node modify --master-candidate=yes {name}")

    def _await_jobs(self, master: Node) -> None:
        running = "gnt-job list --running --no-headers -o id,status,summary"
        end = time.monotonic() + JOBS_S
        while left := self._tell(master, running)[1]:
            if time.monotonic() > end:
                why = self._tell(master, "gnt-job list --running --no-headers -o id,opexec,status")
                raise Unsettled(f"These jobs have not ended after {JOBS_S:g} s:\n{left}\n{why[1]}")
            time.sleep(POLL_S)

    def _put_in_order(self, master: Node) -> str:
        """Do what the cluster says is to be done; return what it is not content with."""
        fields = "name,status,mirror_state"
        line = f"gnt-instance list --no-headers --separator=, -o {fields}"
        done, text = self._tell(master, line)
        if not done:
            return text
        for name, status, state in (line.split(",") for line in text.splitlines()):
            if status != "running":
                self._order(f"gnt-instance startup {name}")
            elif state in MENDED_BY:
                self._order(f"{MENDED_BY[state]} {name}")
        done, found = self._tell(master, "gnt-cluster verify || true", ORDER_S)
        for name in re.findall(r"gnt-instance migrate --cleanup (\S+?)[”\s]", found):
            self._order(f"gnt-instance migrate --cleanup --force {name}")
        if not done:
            return found
        _, said = self._tell(master, "gnt-job list --no-headers -o oplog")
        for name in left_on(said, found):
            self._order(f"gnt-node remove-leftovers --force {name}")
        wrong = [line for line in found.splitlines() if "ERROR" in line or "WARNING" in line]
        return "\n".join([*wrong, *self._not_whole(master)])

    def _not_whole(self, master: Node) -> list[str]:
        line = "gnt-instance list --no-headers --separator=, -o name,status,mirror_state"
        rows = (row.split(",") for row in self._tell(master, line)[1].splitlines())
        return [
            f"{name} is {status}, its disks are {state}"
            for name, status, state in rows
            if status != "running" or state not in ("whole", NO_MIRROR)
        ]

    def _order(self, line: str) -> None:
        self._say(f"  # {line}: {self.order(line)}")

    def _do(self, node: Node, line: str) -> None:
        done, told = self._tell(node, line, ORDER_S)
        self._say(f"  {node.name}# {line}: {'done' if done else told}")

    def _tell(self, node: Node, line: str, seconds: float = ANSWER_S) -> tuple[bool, str]:
        """Run a command on a node; return whether it succeeded, and what it said."""
        try:
            words = f"timeout {seconds:g} sh -c {shlex.quote(line)}"
            return True, node.run(words, timeout_s=seconds + ANSWER_S).strip()
        except Trouble as error:
            return False, last_words(str(error))


def find_master(names: Sequence[str], ask: Callable[[str, str], tuple[bool, str]]) -> str | None:
    """Return who answers as master, or else who takes itself for it; None if nobody does.

    A master that was given up while it was off still takes itself for one: nobody tells it.

    Args:
        names: of nodes that are on.
        ask: has a node run a command; returns whether it succeeded, and what it said.
    """
    answering = (name for name in names if ask(name, ANSWERS)[0])
    named = (name for name in names if ask(name, NAMES)[1] == name)
    return next(answering, None) or next(named, None)


def left_on(said: str, found: str) -> list[str]:
    """Return the nodes on which jobs have said that they leave an old copy, which verify finds.

    What is left over and no job has told of stays, and is seen.

    Args:
        said: the logs of jobs.
        found: what verify found.
    """
    names = sorted(set(re.findall(r"old copy of disk \d+ is left on (\S+?):", said)))
    return [name for name in names if f"“gnt-node remove-leftovers {name}”" in found]


def last_words(text: str) -> str:
    """Return why a command failed, or what it said last, on one line.

    Args:
        text: what it said, which may be broken into lines, after the words that brought it to its
            node.
    """
    _, failure, why = text.rpartition("Failure: ")
    if failure:
        return " ".join(why.split())
    said = text.rpartition("” ")[2].strip() or text
    return said.splitlines()[-1].strip()
