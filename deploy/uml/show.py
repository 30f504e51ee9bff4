"""The loss of a node, shown: a mirrored guest writes, its node loses its power, nothing is lost."""

import re
import shlex
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from deploy.uml import cluster
from deploy.uml.command import Trouble, begin, end
from deploy.uml.guest import ensure_files
from deploy.uml.lab import Lab
from deploy.uml.node import Node

NAME = "shop"
ENOUGH = 25  # numbers, five a second, until the power goes
PATIENCE_S = 180.0
POLL_S = 0.2
_COUNT = re.compile(r"^count (\d+)\s*$", re.MULTILINE)
_GOES_ON = re.compile(r"going on from (\d+)")

Say = Callable[[str], None]


def show(lab: Lab, say: Say) -> None:
    """Tell the story on three nodes, each command as an operator types it.

    Raises:
        Trouble: what the guest had written is not there, or something else went wrong.
    """
    master = cluster.form(lab.up(3, say), say)
    home, second = (node for node in lab.nodes()[:3] if node.name != master.name)
    operator = _Operator(master, say)
    if NAME in master.run("gnt-instance list --no-headers -o name").split():
        operator.types(f"gnt-instance remove --force --shutdown-timeout 0 {NAME}")
    operator.types(
        f"gnt-instance add -t drbd -n {home.name}:{second.name} --disk 0:size=128M --no-nics "
        f"-B memory=128 -H kvm:{ensure_files(lab)} {NAME}"
    )
    log = _log_of(master)
    with _Console(home, log) as console:
        _await(lambda: console.newest() >= ENOUGH, f"{NAME} to count")
        say(f"{NAME} runs on {home.name}, and writes each number to its disk before it tells it")
        home.power_off()
        told = console.newest()
    say(f"{home.name} has lost its power; the last number that {NAME} told is {told}")
    operator.types(f"gnt-node modify --offline=yes --force {home.name}")
    with _Console(second, log) as console:
        took = operator.types(f"gnt-instance failover --force {NAME}")
        say(f"{NAME} runs on {second.name}, {took:.1f} s after the command")
        _await(lambda: console.goes_on_from() is not None, f"{NAME} to boot")
        found = console.goes_on_from()
        if found is None or found < told:
            raise Trouble(f"{NAME} told {told}, and found {found} on its disk: writes are lost.")
        say(f"its Linux has booted, and found {found} on its disk: nothing is lost")
        _await(lambda: console.newest() > found + ENOUGH, f"{NAME} to go on")
        say(f"it is at {console.newest()}, on one copy")
    lab.up(3, say)
    operator.types(f"gnt-node modify --master-candidate=yes {home.name}")
    began = time.monotonic()
    operator.types(f"gnt-instance activate-disks --wait-for-sync {NAME}")
    state = master.run(f"gnt-instance list --no-headers -o mirror_state {NAME}").strip()
    if state != "whole":
        raise Trouble(f"The disk of {NAME} is {state} after {home.name} has come back.")
    say(f"both copies are equal again, after {time.monotonic() - began:.1f} s")
    cluster.check_clean(master)
    say("gnt-cluster verify is clean")


class _Operator:
    """Types commands on the master, and lets everybody see them."""

    def __init__(self, master: Node, say: Say) -> None:
        self._master, self._say = master, say

    def types(self, line: str) -> float:
        """Return how many seconds it took."""
        self._say(f"{self._master.name}# {line}")
        began = time.monotonic()
        self._master.run(line, timeout_s=PATIENCE_S)
        return time.monotonic() - began


class _Console:
    """All that a guest says on a node from now on, heard while it says it."""

    def __init__(self, node: Node, log: str) -> None:
        words = f"exec tail -n +1 -s 0.1 -F {shlex.quote(log)} 2>/dev/null"
        self._process = begin((*node.ssh(), words))
        self._said = ""
        self._thread = threading.Thread(target=self._hear, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._thread.join()
        with suppress(subprocess.SubprocessError):
            end(self._process)

    def newest(self) -> int:
        return max(map(int, _COUNT.findall(self._said)), default=0)

    def goes_on_from(self) -> int | None:
        found = _GOES_ON.search(self._said)
        return int(found[1]) if found else None

    def _hear(self) -> None:
        for line in self._process.stdout or ():
            self._said += line


def _log_of(master: Node) -> str:
    uuid = master.run(f"gnt-instance list --no-headers -o uuid {NAME}").strip()
    return f"/run/gantry/instances/{uuid}/serial.log"


def _await(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            raise Trouble(f"Waited {PATIENCE_S:g} s in vain for {what}.")
        time.sleep(POLL_S)
