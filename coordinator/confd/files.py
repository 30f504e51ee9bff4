"""The files that a node has been given for its ``gantry-confd``, read anew when they change."""

import logging
from pathlib import Path

from common.confd_snapshot import KEY_FILE, SNAPSHOT_FILE, unpack
from common.errors import GntError
from coordinator.confd.directory import Directory
from coordinator.confd.service import Known

log = logging.getLogger(__name__)

_Look = tuple[tuple[int, int, int], ...]  # inode, size and time of change of each file


class PublishedFiles:
    """Each is replaced as a whole, so what is read is never half of something."""

    def __init__(self, folder: Path) -> None:
        self._files = (folder / KEY_FILE, folder / SNAPSHOT_FILE)
        self._seen: _Look | None = None
        self._known: Known | None = None

    def read(self) -> Known | None:
        """Return what they say; None where nothing is published."""
        look = self._look()
        if look != self._seen:
            self._known = self._load() if look else None
            self._seen = look
        return self._known

    def _look(self) -> _Look:
        try:
            return tuple(
                (told.st_ino, told.st_size, told.st_mtime_ns)
                for told in (file.stat() for file in self._files)
            )
        except OSError:  # they are not there, or not for us
            return ()

    def _load(self) -> Known | None:
        try:
            key, packed = (file.read_bytes() for file in self._files)
        except OSError as error:
            log.warning("Cannot read what is published here: %s.", error)
            return None
        if not key:
            log.warning("The key in %s is empty, so nobody is answered.", self._files[0])
            return None
        try:
            return Known(key, Directory(unpack(packed)))
        except (GntError, LookupError) as error:
            log.warning("Questions are answered with an internal error: %s", error)
            return Known(key, None)
