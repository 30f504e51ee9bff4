"""Files that the tools write: the cluster as it was or would be, and commands to give."""

from __future__ import annotations

from pathlib import Path

from common.errors import InvalidRequest
from coordinator.htools.output import say, tell
from coordinator.htools.text import format_cluster

TYPE_CHECKING = False
if TYPE_CHECKING:
    from coordinator.allocator.snapshot import Snapshot

# The stop file is beside the script: in a directory that all may write to, anybody could stop it.
_SCRIPT_HEADER = """#!/bin/sh
# Moves that {program} proposes. Create the file "$0.stop" to have it end before the next job.
set -e

check() {{
  if [ -e "$0.stop" ]; then
    echo "Asked to stop by $0.stop."
    exit 0
  fi
}}

"""


def write(path: Path, text: str, what: str) -> None:
    """Write a file.

    Raises:
        InvalidRequest: it cannot be written; says ``what`` it was to hold.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidRequest(f"Cannot write {what} to {path}: {error.strerror}.") from error


def save_cluster(cluster: Snapshot, prefix: str | None, ending: str, when: str) -> None:
    """Write the cluster to ``prefix.ending``, and say so on stderr; without a prefix do nothing.

    Raises:
        InvalidRequest: the file cannot be written.
    """
    if prefix is None:
        return
    path = Path(f"{prefix}.{ending}")
    write(path, format_cluster(cluster), "the cluster")
    tell(f"The cluster state {when} has been written to file '{path}'")


def tell_commands(text: str, to: str, title: str, program: str) -> None:
    """Print commands under a title, or write them to a file as a script.

    A line `` check`` is where a script may be stopped. ``to`` is the file; empty to print them, and
    then with the title.

    Raises:
        InvalidRequest: the file cannot be written.
    """
    if not to:
        lines = [f"  {line}" for line in text.splitlines() if line != "  check"]
        say("\n".join(["", title, *lines]))
        return
    write(Path(to), _SCRIPT_HEADER.format(program=program) + text, "the commands")
    say(f"The commands have been written to file '{to}'")
