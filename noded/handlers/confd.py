"""Calls about what ``gantry-confd`` of this node answers from."""

import asyncio
import grp
import os
from pathlib import Path

from common.confd_snapshot import KEY_FILE, SNAPSHOT_FILE
from common.noderpc.confd import Confd
from noded.durable_file import explaining, remove_durably, write_durably
from noded.system.threads import in_thread

GROUP = "gantry-confd"  # whose key it is, too


class ConfdHandlers(Confd):
    """The two files of one directory, which are the daemon's to read and nobody else's."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._writing = asyncio.Lock()

    async def publish(self, *, key: str, snapshot: bytes) -> None:
        async with self._writing:
            await in_thread(self._write, {KEY_FILE: key.encode(), SNAPSHOT_FILE: snapshot})

    async def withdraw(self) -> None:
        async with self._writing:
            await in_thread(self._remove)

    def _write(self, files: dict[str, bytes]) -> None:
        with explaining(f"create {self._directory}"):
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if (group := _group()) is not None:
                os.chown(self._directory, -1, group)
                self._directory.chmod(0o2750)  # new files are the group's, too
        for name, data in files.items():
            write_durably(self._directory / name, data, mode=0o640)

    def _remove(self) -> None:
        # The key goes first: without it nothing is answered.
        for name in (KEY_FILE, SNAPSHOT_FILE):
            if (self._directory / name).exists():
                remove_durably(self._directory / name)


def _group() -> int | None:
    """Return the daemon's group; None where it is not installed, or noded is not root."""
    try:
        return grp.getgrnam(GROUP).gr_gid if os.geteuid() == 0 else None
    except KeyError:
        return None
