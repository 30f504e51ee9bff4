"""Letting in the one node that may have the data, or bring it, and nobody else."""

import hmac
import queue
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, NamedTuple, TypeVar

from common.errors import GntError
from common.noderpc.copies import Peer
from common.tls.context import read_peer
from noded.copies.frames import DEAD_AFTER_S, Garbled, Hello, Line

GREETING_S = 5.0  # for a handshake and a hello
MOST_UNKNOWN = 32  # connections of whom we do not know yet; others are closed at once


class Visit(NamedTuple):
    line: Line
    hello: Hello


V = TypeVar("V")


def to_member(peer: Peer, secret: str) -> Callable[[ssl.SSLSocket], Visit | None]:
    """Return what lets in a node of this cluster that knows the secret and says hello."""

    def let_in(connection: ssl.SSLSocket) -> Visit | None:
        shown = read_peer(connection)
        if shown is None or shown.node != peer.name or peer.key not in ("", shown.key):
            return None
        line = Line(connection)
        hello = line.hear(Hello)
        if not knows(hello, secret):
            return None
        line.wait_for(DEAD_AFTER_S)
        return Visit(line, hello)

    return let_in


def knows(hello: Hello, secret: str) -> bool:
    return hmac.compare_digest(hello.secret.encode(), secret.encode())


class Door(Generic[V]):
    """Takes in whom TLS and ``let_in`` know; that returns what they are from then on.

    The newest visit counts: of the one before, the other side has given up, even if nothing was
    heard of that.
    """

    def __init__(
        self,
        listener: socket.socket,
        context: ssl.SSLContext,
        let_in: Callable[[ssl.SSLSocket], V | None],
    ) -> None:
        self._listener, self._context, self._let_in = listener, context, let_in
        self._visits: queue.SimpleQueue[V] = queue.SimpleQueue()
        self._unknown = threading.Semaphore(MOST_UNKNOWN)
        self._present: ssl.SSLSocket | None = None
        self._is_open = True

    def open(self) -> None:
        """Begin to take in visits."""
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take in nobody any more."""
        self._is_open = False
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def wait(self, seconds: float) -> V | None:
        """Return the next visit; None if nobody came."""
        try:
            return self._visits.get(timeout=seconds)
        except queue.Empty:
            return None

    def _accept(self) -> None:
        while self._is_open:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # it has gone again
                continue
            if self._unknown.acquire(blocking=False):
                threading.Thread(target=self._greet, args=(connection,), daemon=True).start()
            else:
                connection.close()

    def _greet(self, connection: socket.socket) -> None:
        try:
            connection.settimeout(GREETING_S)
            secured = self._context.wrap_socket(connection, server_side=True)
            visit = self._let_in(secured)
        except (OSError, EOFError, Garbled, GntError):
            connection.close()
            return
        finally:
            self._unknown.release()
        if visit is None:
            secured.close()
            return
        if self._present is not None:
            with suppress(OSError):
                # Who serves it closes it: closed here, its number might be another's already.
                self._present.shutdown(socket.SHUT_RDWR)
        self._present = secured
        self._visits.put(visit)
