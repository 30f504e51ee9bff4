"""What scripts write and read beside their disks: a pipe each, from its beginning to its end."""

import os
import re
from pathlib import Path
from typing import NoReturn

from common.errors import InvalidRequest, NotFound
from common.model.backing import StreamBacking
from common.noderpc.disks import Access, DiskReport, DiskSpec
from noded.operating_systems.home import STREAM
from noded.storage.interface import Storage

_RUN = re.compile(r"[0-9A-Za-z-]{1,128}")


def stream_of(disk: DiskSpec) -> str:
    """Return the run of whose script this is the stream.

    Raises:
        InvalidRequest: it is none.
    """
    backing: object = disk.backing
    if not isinstance(backing, StreamBacking) or not _RUN.fullmatch(backing.run):
        raise InvalidRequest("This is no stream of a script.", disk=disk.id)
    return backing.run


def not_waiting(run: str) -> NotFound:
    return NotFound(
        f"No script {run} waits for who takes or brings its stream: that happens once, from its "
        "beginning.",
        run=run,
    )


class Streams(Storage):
    """Streams take the place of disks in copies; they come and go with their scripts."""

    def __init__(self, runs: Path) -> None:
        """Find them among the ``runs`` of scripts."""
        self._runs = runs

    def check_place(self, disk: DiskSpec) -> None:
        stream_of(disk)

    async def ensure_present(self, disk: DiskSpec) -> None:
        self._refuse(disk)

    async def ensure_absent(self, disk: DiskSpec) -> None:
        self._refuse(disk)

    async def find(self, disk: DiskSpec) -> DiskReport | None:  # noqa: ARG002 -- it is no disk
        return None

    async def grow(self, disk: DiskSpec) -> None:
        self._refuse(disk)

    async def attach(self, disk: DiskSpec, access: Access) -> str:  # noqa: ARG002 -- for disks
        self._refuse(disk)

    async def detach(self, disk: DiskSpec) -> None:
        stream_of(disk)

    def open(self, disk: DiskSpec) -> int:
        """Return what names the pipe; whoever opens that is met by the script, once.

        Raises:
            NotFound: no script waits for it (any more).
        """
        run = stream_of(disk)
        try:
            return os.open(self._runs / run / STREAM, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise not_waiting(run) from error

    def _refuse(self, disk: DiskSpec) -> NoReturn:
        raise InvalidRequest(f"{disk.backing.where} is no disk.", disk=disk.id)
