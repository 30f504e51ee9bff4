"""Files that the master puts in their places, where root of this node allows it.

noded is root, so it writes, and reads, only where root alone writes: no directory on the way is a
link, or can be written by others.
"""

import errno
import grp
import hashlib
import os
import pwd
import stat
from pathlib import Path

from common.errors import NodeFailure
from common.noderpc.remote import MOST_BYTES, KeptFile
from common.paths import Paths
from noded.durable_file import explaining, write_durably
from noded.remote.rules import Rules, read_rules

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class AllowedFiles:
    """The files of one node; every method blocks."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._rules_file = paths.remote_rules

    def put(self, file: KeptFile) -> None:
        """Have a file be so; see ``Remote.put``."""
        place = self._place(file.path)
        user, group = _ids(file)
        _check_way(place, self._paths.root)
        with explaining(f"look at {file.path}"):
            if os.path.lexists(place) and not stat.S_ISREG(place.lstat().st_mode):
                raise NodeFailure(f"{file.path} is there, and is no plain file.", path=file.path)
        write_durably(place, file.data, mode=file.mode, owner=(user, group))

    def get(self, path: str) -> KeptFile | None:
        """Return a file; see ``Remote.get``."""
        place = self._place(path)
        try:
            _check_way(place, self._paths.root)
        except NodeFailure as error:
            if error.detail.get("errno") == errno.ENOENT:
                return None
            raise
        with explaining(f"read {path}"):
            try:
                descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            except FileNotFoundError:
                return None
            with os.fdopen(descriptor, "rb") as file:
                found = os.fstat(descriptor)
                if not stat.S_ISREG(found.st_mode):
                    raise NodeFailure(f"{path} is no plain file.", path=path)
                data = file.read(MOST_BYTES + 1)
        check_size(path, len(data))
        return KeptFile(
            path=path, data=data, mode=stat.S_IMODE(found.st_mode) & 0o777,
            owner=owner_of(found.st_uid), group=group_of(found.st_gid),
        )  # fmt: skip

    def digest(self, path: str) -> str:
        """Return the SHA-256 of a file; nothing if it is not there, or may not be."""
        try:
            file = self.get(path)
        except NodeFailure:
            return ""
        return "" if file is None else hashlib.sha256(file.data).hexdigest()

    def _place(self, path: str) -> Path:
        """Return where a file is.

        Raises:
            NodeFailure: it may not be put here, or its path is not as short as it could be.
        """
        rules = read_rules(self._rules_file)
        if os.path.normpath(path) != path or path.startswith("//") or "\0" in path:
            raise NodeFailure(f"{path} is no plain path from /, without “..”.", path=path)
        place = self._paths.root / path.removeprefix("/")
        if place == self._paths.rapi_users:
            return place
        own = (self._paths.state, self._paths.runtime, self._paths.settings, self._paths.logs)
        if any(place.is_relative_to(each) for each in own) or not _is_among(path, rules):
            allowed = ", ".join(rules.files) or "none yet"
            raise NodeFailure(
                f"{path} may not be put on this node; its root says in {rules.source} which files "
                f"may (“file /PATH”): {allowed}.",
                path=path,
            )
        return place


def check_size(path: str, size: int) -> None:
    """Refuse a file that is too large for a call.

    Raises:
        NodeFailure: says how large one can be.
    """
    if size > MOST_BYTES:
        raise NodeFailure(
            f"{path} has more than {MOST_BYTES >> 20} MiB, which is the most that is copied.",
            path=path,
        )


def owner_of(user: int) -> str:
    """Return the name of a user, or its number if it has none."""
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)


def group_of(group: int) -> str:
    """Return the name of a group, or its number if it has none."""
    try:
        return grp.getgrgid(group).gr_name
    except KeyError:
        return str(group)


def _ids(file: KeptFile) -> tuple[int, int]:
    try:
        return pwd.getpwnam(file.owner).pw_uid, grp.getgrnam(file.group).gr_gid
    except KeyError as error:
        raise NodeFailure(
            f"This node has no user {file.owner} or no group {file.group}, who is to own "
            f"{file.path}.",
            path=file.path,
        ) from error


def _is_among(path: str, rules: Rules) -> bool:
    return any(path == each or path.startswith(each + "/") for each in rules.files)


def _check_way(place: Path, root: Path) -> None:
    """Refuse a directory on the way that is a link, or that others than root can write."""
    way = [each for each in place.parents if each.is_relative_to(root)]
    for directory in reversed(way):
        with explaining(f"use the directory {directory}"):
            found = directory.lstat()
        is_roots = found.st_uid in (0, os.geteuid()) and not found.st_mode & _OTHERS_WRITE
        if not stat.S_ISDIR(found.st_mode) or not is_roots:
            raise NodeFailure(
                f"{directory} has to be a directory that root alone can write, and no link.",
                path=str(directory),
            )
