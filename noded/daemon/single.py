"""One noded a node: two would start guests twice and forget each other's promises."""

import fcntl
import os
from pathlib import Path

from common.errors import Conflict
from noded.durable_file import explaining


class SingleInstance:
    """Holds the lock file of a node for as long as this object, or its process, lives."""

    def __init__(self, path: Path) -> None:
        """Take the lock, and note our process number in the file.

        Raises:
            Conflict: another noded has it.
            NodeFailure: the file cannot be made.
        """
        with explaining(f"create {path}"):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            number = os.read(self._descriptor, 20).decode(errors="replace").strip() or "unknown"
            os.close(self._descriptor)
            raise Conflict(
                f"Another noded serves this node already, as process {number}; stop it first. "
                f"Its lock is {path}."
            ) from None
        with explaining(f"write {path}"):
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        """Let the next noded start."""
        os.close(self._descriptor)
