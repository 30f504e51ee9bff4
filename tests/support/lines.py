"""The line of a copy on a socket that is not of the network."""

import socket

from noded.copies.frames import Line


class _Line(Line):
    def __init__(self, end: socket.socket) -> None:
        self._connection = end  # type: ignore[assignment]  # it is read and written alike

    def wait_for(self, seconds: float) -> None:
        self._connection.settimeout(seconds)


def line_on(end: socket.socket) -> Line:
    """Return what speaks on one end of a pair."""
    return _Line(end)
