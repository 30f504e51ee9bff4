"""Files in a directory that a daemon without rights reads, and nobody else but root."""

import asyncio
import grp
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from noded.durable_file import explaining, remove_durably, write_durably
from noded.system.threads import in_thread


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
        for name, data in files.items():
            write_durably(self._directory / name, data, mode=0o640)

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            if (self._directory / name).exists():
                remove_durably(self._directory / name)


def id_of(group: str) -> int | None:
    """Return the number of a group; None where it is not installed, or noded is not root."""
    try:
        return grp.getgrnam(group).gr_gid if os.geteuid() == 0 else None
    except KeyError:
        return None
