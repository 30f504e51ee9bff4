"""What can go wrong with a node from inside; network.cut and Node.freeze are the rest."""

import shlex
from pathlib import PurePosixPath

from deploy.uml.command import Trouble
from deploy.uml.node import Node
from deploy.uml.place import SHARED

DISK = "lab-disk"  # the layer below the volume group, made by lab-node at each start
SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN, fs/ext4/ext4.h
WITHOUT_LOG = 2  # EXT4_GOING_FLAGS_NOLOGFLUSH: what was not written yet is lost


def slow(node: Node, *, delay_ms: int, loss_percent: float) -> None:
    """Delay, and lose some of, what the node sends; zeros end it."""
    node.run("tc qdisc del dev vec0 root 2>/dev/null || true")
    if delay_ms or loss_percent:
        node.run(f"tc qdisc add dev vec0 root netem delay {delay_ms}ms loss {loss_percent:g}%")


def fill(node: Node, path: str) -> None:
    """Leave no room in the file system that holds ``path``, a directory, even for root.

    Raises:
        Trouble: it is this machine's.
    """
    if PurePosixPath(path).is_relative_to(SHARED):
        raise Trouble(f"{path} is a directory of this machine, which would be filled.")
    file = shlex.quote(f"{path}/lab-filler")
    most = f"fallocate --length $(($(stat -f -c '%f * %S' {shlex.quote(path)}) * 99 / 100)) {file}"
    rest = f"dd if=/dev/zero of={file} oflag=append conv=notrunc,fsync 2>/dev/null"
    node.run(f"{most}; {rest} bs=1M; {rest} bs=512; true")


def empty(node: Node, path: str) -> None:
    """End ``fill``."""
    node.run(f"rm -f {shlex.quote(f'{path}/lab-filler')}")


def break_disk(node: Node) -> None:
    """Let each read and write below the volume group fail, until ``mend_disk``."""
    node.run(f"dmsetup wipe_table --force --noflush --nolockfs {DISK}")


def mend_disk(node: Node) -> None:
    """End ``break_disk``."""
    node.run(
        f"dmsetup load {DISK} --table "
        f'"0 $(cat /sys/block/ubdb/size) linear /dev/ubdb 0" && dmsetup resume {DISK}'
    )


def break_system(node: Node) -> None:
    """Let each access to the system disk fail until the node starts anew.

    What is in memory stays; no program can be started that is not.
    """
    ioctl = f"fcntl.ioctl(os.open('/', os.O_RDONLY), {SHUTDOWN}, struct.pack('I', {WITHOUT_LOG}))"
    program = f"import fcntl, os, struct; {ioctl}; os._exit(0)"  # an orderly exit would read files
    node.run(f"python3.11 -c {shlex.quote(program)}")


def shift_clock(node: Node, seconds: int) -> None:
    """Put the node's clock forward, or back.

    Raises:
        Trouble: the clock stayed.
    """
    node.run(f"date --set @$(($(date +%s) + {seconds}))")


def named_seconds(text: str) -> int:
    """Read a number of seconds such as +300.

    Raises:
        Trouble: it is none.
    """
    try:
        return int(text)
    except ValueError as error:
        raise Trouble(f"“{text}” is no number of seconds; write +300 or -300.") from error
