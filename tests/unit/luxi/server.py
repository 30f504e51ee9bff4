"""A unix socket that answers as it is told, in a thread of its own."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Talk = Callable[[socket.socket], None]


@contextmanager
def listening(path: Path, *talks: Talk) -> Iterator[None]:
    """Listen at ``path`` while the context lasts; the n-th connection gets the n-th talk."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            for talk in talks:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    talk(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def reading(connection: socket.socket) -> bytes:
    """Return one message, without its end."""
    data = b""
    while not data.endswith(b"\x03"):
        data += connection.recv(65536) or b"\x03"
    return data[:-1]


def saying(*pieces: bytes) -> Talk:
    """Read one request, then send these pieces, and hang up."""

    def talk(connection: socket.socket) -> None:
        reading(connection)
        for piece in pieces:
            connection.sendall(piece)

    return talk
