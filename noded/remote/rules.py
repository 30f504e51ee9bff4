"""Which files the master may put on this node, and whether it may run commands: root's own word.

Who gives orders to the cluster can add nothing to it. A line of ``/etc/gantry/remote`` is one of
these; ``#`` begins a comment::

    file /etc/ceph      a file, or a directory of files
    shell               commands, of any kind, as root
"""

from dataclasses import dataclass
from pathlib import Path

from common.errors import NodeFailure
from noded.durable_file import explaining
from noded.system.roots_scripts import check_roots_own

FILE, SHELL = "file", "shell"  # words that lines begin with


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is allowed; nothing, where there is no file."""

    source: str  # the file, for messages
    files: tuple[str, ...] = ()
    has_shell: bool = False


def read_rules(path: Path) -> Rules:
    """Read the rules of this node.

    Raises:
        NodeFailure: somebody else than root can write them, or a line makes no sense.
    """
    with explaining(f"read {path}"):
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
            check_roots_own(path)
        except FileNotFoundError:
            return Rules(source=str(path))
    return parse_rules(text, source=str(path))


def parse_rules(text: str, *, source: str) -> Rules:
    """Read rules.

    Raises:
        NodeFailure: names the line.
    """
    files: list[str] = []
    has_shell = False
    for number, line in enumerate(text.splitlines(), start=1):
        word, _, value = line.partition("#")[0].strip().partition(" ")
        value = value.strip()
        if word == FILE and value.startswith("/"):
            files.append(value.rstrip("/"))
        elif word == SHELL and not value:
            has_shell = True
        elif word:
            raise NodeFailure(
                f"Line {number} of {source} is neither “file /PATH” nor “shell”; nothing is "
                "allowed before it is mended.",
                path=source,
            )
    return Rules(source=source, files=tuple(files), has_shell=has_shell)
