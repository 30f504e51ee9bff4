"""Files that the tools write: the cluster as it was or would be, and commands to give."""

import sys
from pathlib import Path

from common.errors import InvalidRequest
from coordinator.allocator.snapshot import Snapshot
from coordinator.htools.jobsets import SCRIPT_HEADER
from coordinator.htools.text import format_cluster


def save_cluster(cluster: Snapshot, prefix: str | None, ending: str, when: str) -> None:
    """Write the cluster to ``prefix.ending``, and say so on stderr; without a prefix do nothing.

    Raises:
        InvalidRequest: the file cannot be written.
    """
    if prefix is None:
        return
    path = Path(f"{prefix}.{ending}")
    try:
        path.write_text(format_cluster(cluster), encoding="utf-8")
    except OSError as error:
        raise InvalidRequest(f"Cannot save the cluster to {path}: {error.strerror}.") from error
    sys.stdout.flush()
    sys.stderr.write(f"The cluster state {when} has been written to file '{path}'\n")


def tell_commands(text: str, to: str, title: str, program: str) -> None:
    """Print commands under a title, or write them to a file as a script.

    Args:
        text: the commands; a line ``  check`` is where a script may be stopped.
        to: the file; empty to print them.
        title: only printed.
        program: whose commands they are.

    Raises:
        InvalidRequest: the file cannot be written.
    """
    if not to:
        lines = [f"  {line}" for line in text.splitlines() if line != "  check"]
        sys.stdout.write("\n".join(["", title, *lines, ""]))
        return
    path = Path(to)
    try:
        path.write_text(SCRIPT_HEADER.replace("hbal", program) + text, encoding="utf-8")
    except OSError as error:
        raise InvalidRequest(f"Cannot write the commands to {path}: {error.strerror}.") from error
    sys.stdout.write(f"The commands have been written to file '{path}'\n")
