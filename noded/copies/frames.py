"""What is said on the connection of a copy.

Whoever fetches says hello: the offer's secret, and how many chunks it has, with their sum. The
other side answers with the disk's size and the chunk at which it begins; then come frames, until
the sum of the whole disk. The one who fetches confirms when all is durable. Who brings a disk to
another cluster says that this was heard, when his own has let go of it: it is not offered again.
"""

import socket
import ssl
import struct
from enum import IntEnum
from typing import Annotated, NamedTuple, TypeVar

from msgspec import Meta

from common.messages import Order, from_json, to_json
from noded.copies.chunks import CHUNK, SUM_BYTES

DEAD_AFTER_S = 60  # without a byte: the other side is gone, or its disk hangs
SCRIPTS_S = 3600  # for a script to read on, or to write on
LARGEST_WORD = 4096

_FRAME = struct.Struct(">BQI16s")  # kind, chunk, length of what follows (or how many chunks), sum
_WORD = struct.Struct(">I")

W = TypeVar("W", bound=Order)


class Kind(IntEnum):
    PLAIN = 1  # a chunk as it is
    PACKED = 2  # a chunk made smaller
    ZEROS = 3  # as many chunks of zeros as the length says
    END = 4  # followed by the sum of the whole disk
    PROBLEM = 5  # followed by a sentence: the disk cannot be read


class Hello(Order, omit_defaults=True):
    """``have`` chunks are there already, whose sum is ``sum`` (hexadecimal).

    A script may take nothing for ``patience_s``: it makes a file system first, say. Of disks that
    is not said, as nodes that know of no scripts expect. ``is_done``: all had come to a script,
    which has ended well, and who has brought it did not hear so.
    """

    secret: str
    have: int
    sum: str
    patience_s: Annotated[int, Meta(ge=1, le=SCRIPTS_S)] = DEAD_AFTER_S
    is_done: bool = False


class Welcome(Order):
    """The disk has ``size`` bytes; what is sent begins with the chunk ``begin``.

    Of what a script writes nobody knows the size before its end. Each of its chunks but the last
    is whole, and as long as it writes nothing no chunks of zeros are sent, so as to be heard. In
    the place of their sum is how many bytes it expects to write, 0 where it has not said so.
    """

    size: Annotated[int, Meta(ge=0)] | None
    begin: Annotated[int, Meta(ge=0)]


class Verdict(Order):
    """What became of it; no ``problem``: all is there and durable."""

    problem: str = ""


class Heard(Order):
    """The verdict has arrived, and who has brought the disk lets go of what he has."""


class Frame(NamedTuple):
    kind: Kind
    number: int
    length: int
    sum: bytes


class Garbled(Exception):
    """What came is not what the other side of a copy says."""


class Line:
    """A connection between two nodes, on which all or nothing is read."""

    def __init__(self, connection: ssl.SSLSocket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, DEAD_AFTER_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, DEAD_AFTER_S * 1000)
        self._connection = connection

    def close(self) -> None:
        self._connection.close()

    def wait_for(self, seconds: float) -> None:
        """Wait so long for the other side from now on, whatever is read or sent."""
        self._connection.settimeout(seconds)
        option = max(DEAD_AFTER_S, round(seconds)) * 1000
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, option)

    def stand_by(self, seconds: float) -> None:
        """Wait so long for a word; that the other machine is there its kernel goes on to tell."""
        self._connection.settimeout(seconds)
        self._connection.setsockopt(
            socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, DEAD_AFTER_S * 1000
        )

    def see_silent(self) -> None:
        """Notice that the other side is gone, where it has nothing to say.

        Raises:
            Garbled, OSError, EOFError: it is, or says something.
        """
        before = self._connection.gettimeout()
        self._connection.settimeout(0)
        try:
            if self._connection.recv(1):
                raise Garbled("it says something where it has to wait")
            raise EOFError("the connection was closed")
        except ssl.SSLWantReadError:
            return
        finally:
            self._connection.settimeout(before)

    def say(self, word: Order) -> None:
        text = to_json(word)
        self._connection.sendall(_WORD.pack(len(text)) + text)

    def hear(self, kind: type[W]) -> W:
        """Read one word.

        Raises:
            Garbled, OSError, EOFError, InvalidRequest: the other side is gone, or makes no sense.
        """
        (length,) = _WORD.unpack(self.read(_WORD.size))
        if length > LARGEST_WORD:
            raise Garbled("a word is too long")
        return from_json(self.read(length), kind, what="the other node's word")

    def send(self, frame: Frame, payload: bytes = b"") -> int:
        """Send a frame; return how many bytes that were."""
        head = _FRAME.pack(frame.kind, frame.number, frame.length, frame.sum)
        self._connection.sendall(head + payload)
        return len(head) + len(payload)

    def receive(self) -> Frame:
        """Read the head of a frame.

        Raises:
            Garbled, OSError, EOFError: the other side is gone, or makes no sense.
        """
        kind, index, length, chunk_sum = _FRAME.unpack(self.read(_FRAME.size))
        try:
            frame = Frame(Kind(kind), index, length, chunk_sum)
        except ValueError as error:
            raise Garbled(f"there is no frame {kind}") from error
        if frame.kind is not Kind.ZEROS and length > CHUNK:
            raise Garbled("a frame is too long")
        return frame

    def read(self, length: int) -> bytes:
        buffer = bytearray(length)
        view, filled = memoryview(buffer), 0
        while filled < length:
            got = self._connection.recv_into(view[filled:])
            if not got:
                raise EOFError("the connection was closed")
            filled += got
        return bytes(buffer)


NO_SUM = bytes(SUM_BYTES)
