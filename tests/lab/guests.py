"""Guests of the stories: tiny ones, which count and leave a sequence of records on their disk."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager

from deploy.uml.node import Node
from deploy.uml.place import FILE_DISKS, SHARED, SHARED_DISKS
from tests.lab.stage import Stage, said, until
from tests.support.sequence import BYTES, Sequence, check
from tests.support.tiny_guest import kernel, numbers

PROGRAM = f"{SHARED}/tiny-guest"  # on all nodes
DIRECTORIES = {"file": FILE_DISKS, "sharedfile": SHARED_DISKS}
VOLUME = "/dev/mapper/gantry-*.disk"  # of which a node of the stories has one at most


class Guest:
    """An instance with one disk, a file or a volume; ``node`` is where it was put at first."""

    def __init__(self, stage: Stage, name: str, template: str) -> None:
        self.name = name
        fields = "--no-headers --separator=, -o uuid,pnode"
        self.uuid, node = stage.alpha.run(f"gnt-instance list {fields} {name}").strip().split(",")
        self.node = stage.lab.node(node)
        is_volume = template == "plain"
        self._disk = VOLUME if is_volume else f"{DIRECTORIES.get(template)}/{self.uuid}/*.raw"

    def process(self, node: Node) -> int:
        """Return the number of its QEMU."""
        return int(node.run(f"cat /run/gantry/instances/{self.uuid}/pid"))

    def told(self, node: Node) -> list[int]:
        """Return what it has counted on its console since it came to a node."""
        said_there = node.run(f"cat /run/gantry/instances/{self.uuid}/serial.log 2>/dev/null; true")
        return numbers(said_there.encode())

    def goes_on(self, node: Node) -> int:
        """Wait until it has counted on, and return how far it is."""
        before = max(self.told(node), default=0)
        until(lambda: max(self.told(node), default=0) > before, f"{self.name} to count")
        return before

    def written(self, node: Node) -> Sequence:
        """Return what is on its disk, as seen from a node; it is whole as far as it has told."""
        told = self.told(node)
        found = read_sequence(node, self._disk)
        assert found.wrong == ()
        assert found.whole_to >= max(told, default=0)
        return found


@contextmanager
def guest(stage: Stage, name: str, template: str, options: str = "") -> Iterator[Guest]:
    """Add a guest and wait until it counts; afterwards remove it, and see that nothing is left."""
    (stage.lab.place.shared / PROGRAM.rpartition("/")[2]).write_bytes(kernel())
    added = said(
        stage.alpha,
        f"gnt-instance add -t {template} --disk 0:size=1M -B memory=128,vcpus=1 --no-nics "
        f"-H kvm:kernel_path={PROGRAM} {options} {name}",
    )
    try:
        assert "exit 0" in added
        made = Guest(stage, name, template)
        made.goes_on(made.node)
        yield made
    finally:
        said(stage.alpha, f"gnt-instance remove --force --shutdown-timeout 0 {name}")
    directories = ("/run/gantry/instances", FILE_DISKS, SHARED_DISKS)
    files = " ".join(f"{directory}/{made.uuid}" for directory in directories)
    processes = f"pgrep --full '^/usr/bin/qemu.*{made.uuid}'"
    for node in stage.nodes:
        assert not node.run(f"ls -d {files} 2>/dev/null; {processes}; true")


def read_sequence(node: Node, path: str) -> Sequence:
    """Read what a tiny guest has written to a file or device on a node."""
    return check(base64.b64decode(node.run(f"head -c {BYTES} {path} | base64 --wrap 0")))
