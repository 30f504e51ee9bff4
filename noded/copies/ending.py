"""How a script has ended whose stream is copied: it is kept in a file beside the stream.

Whoever runs the script has the file locked until it is gone itself, however that comes: so those
who copy hear of a script that was killed, too, and of one that goes on they know that it does.
"""

import fcntl
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

FILE = "ending"
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.01, 1.0
_LONGEST = 16  # bytes of a status


def told(status: int) -> str:
    """Say how a script ended; a shell stands between, which tells signals in its way.

    Args:
        status: of its process, negative for a signal.
    """
    if status > 128:
        return f"was ended by signal {status - 128}"
    if status < 0:
        return f"was ended by signal {-status}"
    return f"ended with status {status}"


class KeptEnding:
    """The file, for who runs the script; locked from now on."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def tell(self, status: int) -> None:
        """Write how it has ended, and let others read that."""
        os.pwrite(self._descriptor, str(status).encode(), 0)
        os.close(self._descriptor)


class Ending:
    """The file, for who copies what the script writes or reads."""

    def __init__(self, stream: int) -> None:
        """Open what is beside the stream that a descriptor names."""
        directory = Path(f"/proc/self/fd/{stream}").readlink().parent
        self._descriptor: int | None = None
        with suppress(FileNotFoundError):
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
            self._descriptor = os.open(directory / FILE, flags)

    def wait(self, *, go_on: Callable[[], None]) -> str:
        """Return why the script has failed, when it has ended; empty: it has ended well.

        ``go_on`` is called now and then meanwhile, and may raise.
        """
        if self._descriptor is None:
            return "does not tell how it ends: it was begun by a noded that is too old"
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                go_on()
                time.sleep(pause_s)  # noqa: TID251 -- its process has no loop
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        status = os.pread(self._descriptor, _LONGEST, 0)
        os.close(self._descriptor)
        self._descriptor = None
        if not status:
            return "was killed"
        return "" if status == b"0" else told(int(status))
