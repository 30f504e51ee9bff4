"""Whose turn it is among scripts that are not trusted: one runs at a time on a node.

What one of them may take of memory is bounded, and so is then what all of them take.
"""

import fcntl
import os

WAITS = (
    "This script is not trusted, and waits until another one has ended: they run one at a time on "
    "a node. If that one never ends, cancel its job.\n"
)


def take_turn(place: str, log: int) -> int:
    """Return when nobody else has the turn, as long as that takes.

    Args:
        place: the directory that all scripts of a node share; nobody but root reaches the file
            there that stands for the turn, and so nobody else can take it.
        log: the descriptor of what is told that there is somebody to wait for.

    Returns:
        A descriptor; the turn is over when it is closed, and so when the process has ended.
    """
    descriptor = os.open(f"{place}/turn", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.write(log, WAITS.encode())
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor
