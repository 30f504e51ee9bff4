"""How much a script expects to write, which it says, if at all, in a file beside its stream."""

import os
from contextlib import suppress
from pathlib import Path

FILE = "estimate"
_LONGEST = 32
_LARGEST = 1 << 60  # bytes; more than that says nothing, as who sends it may be anybody
_LENGTH = 16


def open_estimate(stream: int) -> int | None:
    """Open the file beside the stream that a descriptor names; None if there is none."""
    directory = Path(f"/proc/self/fd/{stream}").readlink().parent
    with suppress(FileNotFoundError):
        return os.open(directory / FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    return None


def read_estimate(descriptor: int) -> int:
    """Return how many bytes it expects to write; 0: it has not said so yet."""
    return _sound(int(os.pread(descriptor, _LONGEST, 0).strip() or b"0"))


def on_the_line(estimate: int) -> bytes:
    """Return it in the place of a sum, where nodes that know of no estimates take no notice."""
    return estimate.to_bytes(_LENGTH)


def from_the_line(told: bytes) -> int:
    return _sound(int.from_bytes(told))


def _sound(estimate: int) -> int:
    return estimate if estimate < _LARGEST else 0
