"""What is mounted where on this node."""

import re
from pathlib import Path
from typing import NamedTuple

from common.errors import NodeFailure

GLUSTER = "fuse.glusterfs"

_ESCAPED = re.compile(r"\\([0-7]{3})")


class Mount(NamedTuple):
    """A file system and what it was mounted from."""

    kind: str
    source: str


def read_mounts() -> str:
    """Return how the kernel tells what is mounted."""
    return Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")


def mount_at(text: str, path: str) -> Mount | None:
    """Return what is mounted right at ``path``, and seen there; None if nothing is.

    Source: proc_pid_mountinfo(5).
    """
    found = None
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        if _plain(before.split(" ")[4]) == path:
            kind, source, *_ = after.split(" ")
            found = Mount(kind, _plain(source))  # the last one hides those below it
    return found


def check_gluster(text: str, path: str, *, volume: str, how: str) -> None:
    """Refuse a directory where another volume is mounted, or none.

    Args:
        text: what is mounted where.
        path: of the directory.
        volume: the name of the volume; any if it is empty.
        how: a command that mounts it, for the message.

    Raises:
        NodeFailure: says what is there, and what to do.
    """
    mount = mount_at(text, path)
    if mount is None or mount.kind != GLUSTER:
        told = f"mount it{f' with “{how}”' if how else ''}, on this node and at each boot"
        raise NodeFailure(f"No Gluster volume is mounted at {path}; {told}.", path=path)
    name = mount.source.rpartition(":")[2].strip("/")
    if volume and name != volume:
        raise NodeFailure(
            f"The Gluster volume “{name}” is mounted at {path}, and not “{volume}”; mount the "
            "right one, or set the parameter volume of gluster disks.",
            path=path,
        )


def _plain(word: str) -> str:
    return _ESCAPED.sub(lambda code: chr(int(code[1], 8)), word)
