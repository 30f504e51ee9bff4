"""Files in a directory that a daemon without rights reads, and nobody else but root."""

import asyncio
import grp
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from noded.durable_file import (
    explaining,
    read_if_there,
    remove_durably,
    sync_directory,
    write_durably,
)
from noded.system.threads import in_thread

MODE = 0o640


class GroupFiles:
    """The files of one directory; ``group`` is the daemon's."""

    def __init__(self, directory: Path, group: str) -> None:
        self._directory, self._group = directory, group
        self._writing = asyncio.Lock()

    async def write(self, files: Mapping[str, bytes]) -> None:
        """Put each of them there, or in the place of an older one, one after the other.

        Raises:
            NodeFailure: the disk is full or broken.
        """
        async with self._writing:
            await in_thread(self._write, files)

    async def remove(self, names: Iterable[str]) -> None:
        """Take those away that are there, in this order.

        Raises:
            NodeFailure: the disk is read-only or broken.
        """
        async with self._writing:
            await in_thread(self._remove, names)

    def _write(self, files: Mapping[str, bytes]) -> None:
        with explaining(f"create {self._directory}"):
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if (group := id_of(self._group)) is not None:
                os.chown(self._directory, -1, group)
                self._directory.chmod(0o2750)  # new files are the group's, too
        # Each new master tells all again; each write would wait for the disk.
        paths = {self._directory / name: data for name, data in files.items()}
        others = [path for path, data in paths.items() if not _is_there(path, data, group)]
        for path in others:
            write_durably(path, paths[path], mode=MODE)
        if not others:  # who wrote them may have ended, or failed, before their names were on disk
            with explaining(f"write {self._directory}"):
                sync_directory(self._directory)

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            if (self._directory / name).exists():
                remove_durably(self._directory / name)


def _is_there(path: Path, data: bytes, group: int | None) -> bool:
    """Tell whether a file is as it would be written, whoever wrote it for whomever."""
    if read_if_there(path) != data:
        return False
    status = path.stat()
    return stat.S_IMODE(status.st_mode) == MODE and group in (None, status.st_gid)


def id_of(group: str) -> int | None:
    """Return the number of a group; None where it is not installed, or noded is not root."""
    try:
        return grp.getgrnam(group).gr_gid if os.geteuid() == 0 else None
    except KeyError:
        return None
