"""What noded keeps of one side of a copy, in memory: a directory of root's."""

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from common.errors import NodeFailure
from common.messages import from_json, to_json
from common.noderpc.copies import Offer
from noded.copies.status import Told, read_status
from noded.system import process
from noded.system.process import Process

PRIVATE = 0o600


class Home:
    """One side: of what is offered, or of what is fetched."""

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
        self._write("pid", str(started.pid).encode())

    def process(self) -> Process | None:
        """Return what does the copying, if it runs; to be closed by the caller."""
        if not self.exists:
            return None

        def is_it(arguments: Sequence[bytes]) -> bool:
            return os.fsencode(self.directory) in arguments

        return process.find(self.directory / "pid", is_it)

    def keep(self, offer: Offer) -> None:
        self._write("offer.json", to_json(offer))

    def offer(self) -> Offer | None:
        with suppress(OSError):
            text = (self.directory / "offer.json").read_bytes()
            return from_json(text, Offer, what="an offer")
        return None

    def told(self) -> Told | None:
        return read_status(self.directory / "status.json")

    def last_words(self) -> str:
        """Return what its process said last, if it ended without a word of what became of it."""
        with suppress(OSError):
            lines = self.log.read_text(errors="replace").strip().splitlines()
            return lines[-1][-500:] if lines else ""
        return ""

    def _write(self, name: str, text: bytes) -> None:
        """Write a file as a whole: noded may be killed at any moment."""
        unfinished = self.directory / f".{name}"
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
        unfinished.replace(self.directory / name)
