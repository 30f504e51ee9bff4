"""Streams of scripts that only pretend: a word each."""

from collections.abc import Callable
from dataclasses import dataclass

from common.noderpc.disks import DiskSpec
from noded.operating_systems.streams import Streams, not_waiting, stream_of

DUMP = "dump of "  # what an export makes of the word on a disk
PART = "a part of "


@dataclass
class FakeStream:
    """``word`` is what a script writes, or what has come for it to read."""

    word: str
    is_read: bool  # by the script
    is_met: bool = False


class FakeStreams(Streams):
    """One machine's, by the runs of their scripts."""

    def __init__(self) -> None:
        self.waiting: dict[str, FakeStream] = {}
        self.ending_of: Callable[[str], str | None] = lambda _: ""  # as whoever runs them knows

    def wait(self, run: str, writes: str | None) -> None:
        """Have a script wait that ``writes`` this, or reads."""
        self.waiting[run] = FakeStream(writes or "", is_read=writes is None)

    def is_done(self, run: str) -> bool:
        """Tell whether a script need not wait for its stream any more."""
        stream = self.waiting.get(run)
        if stream is None:
            return True
        has_come = bool(stream.word) and not stream.word.startswith(PART)
        return stream.is_met and (has_come or not stream.is_read)

    def ending(self, disk: DiskSpec) -> str | None:
        """Return why its script has failed; None: it goes on, empty: it has ended well."""
        return self.ending_of(stream_of(disk))

    def open(self, disk: DiskSpec) -> int:
        run = stream_of(disk)
        stream = self.waiting.get(run)
        if stream is None or stream.is_met:
            raise not_waiting(run)
        stream.is_met = True
        return -1

    def read(self, disk: DiskSpec) -> str:
        stream = self.waiting.get(stream_of(disk))
        return stream.word if stream else PART

    def write(self, disk: DiskSpec, word: str) -> None:
        if stream := self.waiting.get(stream_of(disk)):
            stream.word = word
