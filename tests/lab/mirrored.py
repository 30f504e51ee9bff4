"""A guest whose disk two nodes mirror, and what it was told to have been written."""

import base64
import logging
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from deploy.uml import network
from deploy.uml.node import Node
from tests.lab.guests import PROGRAM, Guest
from tests.lab.stage import Stage, said, until
from tests.support.sequence import BYTES, Sequence, check
from tests.support.tiny_guest import kernel, numbers

NAME = "ledger"
LOST_S = 60.0  # until nodes that are cut off from each other both know it

log = logging.getLogger(__name__)


class Ledger(Guest):
    """The guest of these stories, on two of the nodes; it is wherever the cluster says."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage, NAME, "drbd")
        self._stage = stage

    @property
    def homes(self) -> tuple[Node, Node]:
        """Return its primary node and its secondary one."""
        fields = self._stage.alpha.run(
            f"gnt-instance list --no-headers --separator=, -o pnode,snodes {NAME}"
        )
        nodes = {node.name: node for node in self._stage.nodes}
        home, second = fields.strip().split(",")
        return nodes[home], nodes[second]

    @property
    def state(self) -> str:
        """Return how its copies are, in a word."""
        return self._stage.alpha.run(
            f"gnt-instance list --no-headers -o mirror_state {NAME}"
        ).strip()

    def becomes(self, state: str) -> None:
        until(lambda: self.state == state, f"{NAME} to be {state}")

    def order(self, command: str, *, seconds: float = 240.0) -> str:
        """Have the cluster do something with it, which has to succeed; return what was said."""
        began = time.monotonic()
        words = said(self._stage.alpha, f"gnt-instance {command} {NAME}", seconds=seconds)
        log.info("gnt-instance %s took %.1f s", command, time.monotonic() - began)
        assert "exit 0" in words
        return words

    @contextmanager
    def witness(self, node: Node) -> Iterator["Witness"]:
        """Write down here what it tells on a node, as long as that node can."""
        line = f"tail --follow --lines=+1 /run/gantry/instances/{self.uuid}/serial.log"
        with tempfile.TemporaryFile() as file:
            words = (*node.ssh(), line)
            process = subprocess.Popen(words, stdout=file, stderr=subprocess.DEVNULL)
            witness = Witness(file.fileno())
            try:
                yield witness
            finally:
                process.kill()
                process.wait()
                witness.look()

    def on_disk(self, node: Node) -> Sequence:
        """Return what its disk has where it is in use, past all caches."""
        words = f"dd if=/dev/$(ls /sys/block | grep ^drbd) bs={BYTES} count=1 iflag=direct"
        found = check(base64.b64decode(node.run(f"{words} 2>/dev/null | base64 --wrap 0")))
        assert found.wrong == ()
        return found


class Witness:
    """What a guest has told, kept where no node can lose it."""

    def __init__(self, file: int) -> None:
        self._file = file
        self.last = 0  # the number of which the guest was told last that it is on its disk

    def look(self) -> int:
        """Return how far it is by now."""
        told = os.pread(self._file, os.fstat(self._file).st_size, 0)  # the writer's position stays
        self.last = max(numbers(told), default=0)
        return self.last


def make(stage: Stage) -> Ledger:
    """Add the guest, on beta and gamma, and wait until it counts."""
    (stage.lab.place.shared / PROGRAM.rpartition("/")[2]).write_bytes(kernel())
    added = said(
        stage.alpha,
        f"gnt-instance add -t drbd -n beta:gamma --disk 0:size=8M -B memory=128,vcpus=1 "
        f"--no-nics -H kvm:kernel_path={PROGRAM} {NAME}",
    )
    assert "exit 0" in added
    ledger = Ledger(stage)
    ledger.goes_on(stage.beta)
    return ledger


def remove(stage: Stage) -> None:
    said(stage.alpha, f"gnt-instance remove --force --shutdown-timeout 0 {NAME}")


def part(stage: Stage, one: Node, other: Node) -> None:
    """Let nothing pass between two nodes."""
    network.cut(stage.lab.place, one.spot, other.spot)
    network.cut(stage.lab.place, other.spot, one.spot)


def states(node: Node) -> str:
    """Return what DRBD says of the device on a node."""
    return node.run("cat /proc/drbd")


def sync_kib(node: Node) -> int:
    """Return how much DRBD says to have copied to a node, all in all, since it was booted."""
    told = node.run("dmesg | grep --only-matching 'as SyncTarget (will sync [0-9]* KB'; true")
    return sum(int(line.split()[-2]) for line in told.splitlines())
