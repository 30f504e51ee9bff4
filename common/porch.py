"""Where connections wait until their first message is there: a descriptor each, and no buffers.

Nothing is known of who comes here, so nothing is spent on them. Bytes stay in the kernel, which
wakes us when the whole first message of a TLS handshake is there (SO_RCVLOWAT, socket(7)).
"""

import asyncio
import fcntl
import logging
import socket
import struct
import termios
from collections.abc import Callable, Collection
from contextlib import suppress

from common.places import Places, source_of
from common.refusals import Refusals

MOST_WAITING, MOST_FROM_ONE = 512, 64
SILENCE_S = 10.0  # until a connection is closed whose first message is not there
PAUSE_S = 1.0  # when the system has no descriptors left
AT_ONCE = 64  # connections accepted before others get their turn
BACKLOG = 4096  # what the kernel keeps for us meanwhile; it costs us nothing

HEADER_BYTES = 5  # of a TLS record: type, version, length (RFC 8446, 5.1)
HANDSHAKE, VERSION = 22, 3
SHORTEST, LONGEST = 32, 8192  # bytes of a ClientHello

log = logging.getLogger(__name__)


class Porch:
    """Accepts all who come, and gives out those who have said hello, fairly by source."""

    def __init__(
        self, listener: socket.socket, refusals: Refusals, on_ready: Callable[[], None]
    ) -> None:
        """Take over ``listener``, which is bound; ``on_ready``: there is one to be taken."""
        listener.settimeout(0)
        listener.listen(BACKLOG)
        self._listener = listener
        self._refusals = refusals
        self._on_ready = on_ready
        self._places: Places[socket.socket] = Places(MOST_WAITING, MOST_FROM_ONE)
        self._silent: dict[socket.socket, tuple[str, float]] = {}  # since when; oldest first
        self._ready: dict[str, dict[socket.socket, None]] = {}  # by source, whose turn is first
        self._timer: asyncio.TimerHandle | None = None
        self._pause: asyncio.TimerHandle | None = None

    def open(self) -> None:
        """Begin to accept."""
        asyncio.get_running_loop().add_reader(self._listener, self._accept)

    def close(self) -> None:
        """Accept nobody any more, and send away those who wait."""
        for timer in (self._timer, self._pause):
            if timer:
                timer.cancel()
        asyncio.get_running_loop().remove_reader(self._listener)
        self._listener.close()
        for connection in self._places:
            self._send_away(connection)

    @property
    def sources(self) -> Collection[str]:
        """Where those come from who can be taken, in the order in which they should be."""
        return self._ready.keys()

    def take(self, source: str) -> socket.socket:
        """Hand over the first one of a source; the source is last from now on."""
        waiting = self._ready.pop(source)
        connection = next(iter(waiting))
        del waiting[connection]
        if waiting:
            self._ready[source] = waiting
        self._places.leave(connection)
        return connection

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            try:
                connection, address = self._listener.accept()
            except (BlockingIOError, ConnectionError):  # all are here, or it has gone already
                return
            except OSError as error:  # no descriptors are left
                log.warning("Cannot accept a connection: %s.", error)
                loop = asyncio.get_running_loop()
                loop.remove_reader(self._listener)
                self._pause = loop.call_later(PAUSE_S, self.open)
                return
            self._receive(connection, source_of(address[0]))

    def _receive(self, connection: socket.socket, source: str) -> None:
        connection.settimeout(0)
        loop = asyncio.get_running_loop()
        self._silent[connection] = source, loop.time()
        goes = self._places.take(connection, source)
        if goes is not None:
            self._send_away(goes)
            self._refusals.add(source, "too many wait to be let in")
        if connection in self._places:
            _wake_at(connection, HEADER_BYTES)
            loop.add_reader(connection, self._look, connection)
            self._watch_silence()

    def _look(self, connection: socket.socket) -> None:
        """Look at what has come, and leave it there for TLS."""
        source, _ = self._silent[connection]
        try:
            header = connection.recv(HEADER_BYTES, socket.MSG_PEEK)
            if not self._is_whole(connection, HEADER_BYTES + _length(header)):
                return
        except (OSError, ValueError) as error:
            self._send_away(connection)
            self._refusals.add(source, str(error) or "it went away without a word")
            return
        asyncio.get_running_loop().remove_reader(connection)
        _wake_at(connection, 1)
        del self._silent[connection]
        self._ready.setdefault(source, {})[connection] = None
        self._on_ready()

    def _is_whole(self, connection: socket.socket, count: int) -> bool:
        """Tell whether ``count`` bytes have come; if not, they are waited for once.

        Raises:
            ValueError: they will not come any more.
        """
        if _there(connection) >= count:
            return True
        if connection.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) == count:
            raise ValueError("it went away amid its first message")
        _wake_at(connection, count)
        return False

    def _send_away(self, connection: socket.socket) -> None:
        self._places.leave(connection)
        if self._silent.pop(connection, None):
            asyncio.get_running_loop().remove_reader(connection)
        else:
            for source, waiting in tuple(self._ready.items()):
                if waiting.pop(connection, self) is None and not waiting:
                    del self._ready[source]
        connection.close()

    def _watch_silence(self) -> None:
        if self._silent and not self._timer:
            _, since = next(iter(self._silent.values()))
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(since + SILENCE_S, self._end_silence)

    def _end_silence(self) -> None:
        self._timer = None
        over = asyncio.get_running_loop().time() - SILENCE_S
        for connection, (source, since) in tuple(self._silent.items()):
            if since > over:
                break
            self._send_away(connection)
            self._refusals.add(source, f"it did not shake hands within {SILENCE_S:g} s")
        self._watch_silence()


def _length(header: bytes) -> int:
    """Return how long the first record is.

    Raises:
        ValueError: it is none that begins a handshake.
    """
    if not header:
        raise ValueError("it went away without a word")
    if len(header) < HEADER_BYTES or header[:2] != bytes((HANDSHAKE, VERSION)):
        raise ValueError("it did not begin with a TLS handshake")
    length = int.from_bytes(header[3:])
    if not SHORTEST <= length <= LONGEST:
        raise ValueError(f"its first message has {length} bytes")
    return length


def _there(connection: socket.socket) -> int:
    told: int = struct.unpack("i", fcntl.ioctl(connection, termios.FIONREAD, bytes(4)))[0]
    return told


def _wake_at(connection: socket.socket, count: int) -> None:
    with suppress(OSError):  # it has gone, which shows when it is read
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, count)
