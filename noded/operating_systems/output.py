"""What a script says, on its way to the log: as much as anybody may want to read, not all of it."""

import os
from typing import IO

from noded.operating_systems.masking import Mask

PIECE = 64 << 10  # bytes of a line that are looked at together
MOST_KEPT = 64 << 20
_MORE = b"\nIt says more, which is not kept.\n"


def keep(said: IO[bytes], log: int, mask: Mask, *, most: int = MOST_KEPT) -> None:
    """Write what is said to a log until its end; what is too much is read, and dropped."""
    kept = 0
    while piece := said.readline(PIECE):
        if kept <= most:
            kept += _write(log, mask.hide(piece))
            if kept > most:
                _write(log, _MORE)
    if kept <= most:
        _write(log, mask.rest())


def _write(descriptor: int, data: bytes) -> int:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    return len(data)
