"""Unix sockets that only their owner and group may connect to."""

import os
import socket
from pathlib import Path

MODE = 0o660
BACKLOG = 128


def listen(path: Path) -> socket.socket:
    """Return a socket that listens and does not block; whatever is at ``path`` is replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    # Nobody may connect before the mode is set: an operator's mask may be too generous.
    before = os.umask(0o777 & ~MODE)
    try:
        listener.bind(str(path))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    finally:
        os.umask(before)
    return listener
