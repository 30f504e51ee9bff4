"""DRBD mirrors a volume between two nodes: what a guest was told to be written outlives its node.

Everything is done by hand, as a storage driver will do it.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.uml.node import Node
from deploy.uml.place import SHARED, Spot
from tests.lab.guests import read_sequence
from tests.lab.stage import Stage, said, until
from tests.support.tiny_guest import MEMORY_MIB, kernel, numbers

DEVICE = "/dev/drbd9"
CONSOLE = "mirror.console"  # on this machine's disk, which loses no power
QEMU = (
    f"qemu-system-x86_64 -machine pc,accel=tcg -m {MEMORY_MIB} -nodefaults -display none "
    f"-daemonize -kernel {SHARED}/mirror.kernel -serial file:{SHARED}/{CONSOLE} "
    f"-drive file={DEVICE},format=raw,if=virtio,cache=none"
)

MAKE = """set -e
cat >/etc/drbd.d/mirror.res
lvcreate --yes --size 4M --name mirror gantry
blkdiscard --zeroout /dev/gantry/mirror  # else it may hold an old sequence
drbdadm create-md --force mirror
drbdadm up mirror"""
REMOVE = """pkill --full '^qemu.*mirror.kernel'
drbdadm down mirror
lvremove --yes gantry/mirror
rm /etc/drbd.d/mirror.res"""


@pytest.fixture
def mirrored(stage: Stage) -> Iterator[Stage]:
    """A volume on beta and one on gamma, mirrored; beta is primary."""
    pair = (stage.beta, stage.gamma)
    try:
        for node in pair:
            node.run(MAKE, stdin=resource(*(each.spot for each in pair)))
        stage.beta.run("drbdadm primary --force mirror")
        until(lambda: "ds:UpToDate/UpToDate" in state(stage.beta), "both sides to be the same")
        yield stage
    finally:
        stage.power_on()
        for node in pair:
            said(node, REMOVE)
        for file in stage.lab.place.shared.glob("mirror.*"):
            file.unlink()


def test_what_was_acknowledged_is_on_the_other_node(mirrored: Stage) -> None:
    shared = mirrored.lab.place.shared
    console = shared / CONSOLE
    (shared / "mirror.kernel").write_bytes(kernel())
    mirrored.beta.run(QEMU)
    until(lambda: last(console) > 50, "the guest to count")

    mirrored.beta.power_off()
    told = last(console)
    mirrored.gamma.run("drbdadm primary mirror")
    found = read_sequence(mirrored.gamma, DEVICE)
    assert (found.wrong, found.starts) == ((), 1)
    assert told <= found.whole_to <= told + 1  # one may have been on its way

    mirrored.gamma.run(QEMU)
    until(lambda: last(console) > 50 + found.last, "the guest to go on from there")
    found = read_sequence(mirrored.gamma, DEVICE)
    assert (found.wrong, found.starts) == ((), 2)


def resource(one: Spot, other: Spot) -> str:
    """Return the mirror's description. Source: drbd.conf-8.4(5)."""
    ends = "".join(f"on {spot.name} {{ address {spot.address}:7799; }}\n" for spot in (one, other))
    return (
        f"resource mirror {{\n device {DEVICE};\n disk /dev/gantry/mirror;\n meta-disk internal;\n"
        f"disk {{ c-plan-ahead 0; resync-rate 100M; }}\n{ends}}}\n"
    )


def state(node: Node) -> str:
    return node.run("cat /proc/drbd")


def last(console: Path) -> int:
    return max(numbers(console.read_bytes()), default=0) if console.exists() else 0
