"""What noded keeps of a process that outlives it, in memory: a directory of root's."""

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from common.errors import NodeFailure
from noded.system import process
from noded.system.process import Process

PRIVATE = 0o600


class ProcessHome:
    """Its name is among the arguments of the process, which is found by that."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log = directory / "log"

    @property
    def exists(self) -> bool:
        return self.directory.exists()

    def prepare(self) -> None:
        """Make the directory; one that is there stays as it is.

        Raises:
            NodeFailure: it cannot be made.
        """
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise NodeFailure(f"Cannot make {self.directory}: {error.strerror}.") from error

    def open(self, name: str) -> int:
        """Open a file of this directory, made if it is not there."""
        return os.open(self.directory / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE)

    def remove(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)

    def note(self, started: Process) -> None:
        self.write("pid", str(started.pid).encode())

    def process(self) -> Process | None:
        """Return the process, if it runs; to be closed by the caller."""
        if not self.exists:
            return None

        def is_it(arguments: Sequence[bytes]) -> bool:
            return os.fsencode(self.directory) in arguments

        return process.find(self.directory / "pid", is_it)

    def last_words(self) -> str:
        """Return what its process said last, if it ended without a word of what became of it."""
        with suppress(OSError):
            lines = self.log.read_text(errors="replace").strip().splitlines()
            return lines[-1][-500:] if lines else ""
        return ""

    def write(self, name: str, text: bytes) -> None:
        """Write a file as a whole: noded may be killed at any moment."""
        unfinished = self.directory / f".{name}"
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
        unfinished.replace(self.directory / name)
