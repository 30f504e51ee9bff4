"""Directories of scripts that root has put on a node, and that noded runs as root."""

import os
import stat
from pathlib import Path

from common.errors import NodeFailure

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def check_roots_own(path: Path) -> None:
    """Refuse what others could change: it is run as root.

    Raises:
        NodeFailure: it is not root's, or others can write it.
    """
    found = path.stat()
    if found.st_uid not in (0, os.geteuid()) or found.st_mode & _OTHERS_WRITE:
        raise NodeFailure(
            f"{path} has to be root's, and writable by nobody else: it is run as root.",
            path=str(path),
        )


def check_way(path: Path) -> None:
    """Refuse a path, without links, at which others could put something else.

    In a directory as /tmp anybody may add something, and nobody replaces what is another's.

    Raises:
        NodeFailure: a directory above it is not root's, or others can write it.
    """
    for directory in path.parents:
        found = directory.stat()
        if found.st_uid not in (0, os.geteuid()) or not found.st_mode & stat.S_ISVTX:
            check_roots_own(directory)


def check_program(path: Path, mode: int) -> None:
    """Refuse what cannot be run, or could be changed by others; ``mode`` is that of the file.

    Raises:
        NodeFailure: says which it is.
    """
    if not stat.S_ISREG(mode) or not mode & stat.S_IXUSR:
        raise NodeFailure(f"{path} is no program that can be run.", path=str(path))
    check_roots_own(path)


def parse_parameters(text: str) -> tuple[tuple[str, str], ...]:
    """Read ``parameters.list``: a name and its description in each line."""
    words = (line.split(None, 1) for line in text.splitlines())
    return tuple((word[0], word[1].strip() if len(word) > 1 else "") for word in words if word)
