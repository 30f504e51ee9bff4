"""Bodies that come in chunks, each with its length before it, and do not tell how long they are.

Source: RFC 9112, 7.1. Extensions of chunks and trailers are read over.
"""

import re

MOST_CHUNKS = 4096  # and trailers: each is work, however short it is
LONGEST_LINE = 256  # of a chunk's length, or of a trailer

_IN_CHUNKS = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked[ \t]*(?=\r\n)", re.IGNORECASE)
_CODED = re.compile(rb"\r\ntransfer-encoding[ \t]*:", re.IGNORECASE)
_LENGTH = re.compile(rb"([0-9a-f]{1,8})[ \t]*(;.*)?", re.IGNORECASE)


class Chunks:
    """Puts a body together; more than ``most`` bytes are too many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._body = bytearray()
        self._line = bytearray()  # as far as it has come
        self._left = 0  # bytes of the chunk under way, and of the line end behind it
        self._chunks = 0
        self._is_trailer = False

    def feed(self, data: bytes) -> tuple[bytes | None, bytes]:
        """Take what has come; return the body if that is all of it, and what comes after it.

        Raises:
            ValueError: it is no such body, or too long.
        """
        while data:
            if self._left:
                data = self._take_chunk(data)
                continue
            line, end, rest = (bytes(self._line) + data).partition(b"\n")
            if len(line) > LONGEST_LINE:
                raise ValueError("a line of a body in chunks is too long")
            if not end:
                self._line[:] = line
                return None, b""
            if not line.endswith(b"\r"):
                raise ValueError("a line of a body in chunks does not end as lines do")
            self._line.clear()
            data = rest
            if self._take_line(line[:-1]):
                return bytes(self._body), data
        return None, b""

    def _take_chunk(self, data: bytes) -> bytes:
        """Take what is of a chunk and the line end behind it; return the others."""
        self._body += data[: self._left]
        others = data[self._left :]
        self._left -= len(data) - len(others)
        if not self._left:
            if not self._body.endswith(b"\r\n"):
                raise ValueError("a chunk is longer than it says")
            del self._body[-2:]
        return others

    def _take_line(self, line: bytes) -> bool:
        """Read a chunk's length, or a trailer; tell whether that was the end."""
        self._chunks += 1
        if self._chunks > MOST_CHUNKS:
            raise ValueError("a body in chunks is too long")
        if self._is_trailer:
            return not line
        if (told := _LENGTH.fullmatch(line)) is None:
            raise ValueError("a chunk does not tell its length")
        length = int(told[1], 16)
        if len(self._body) + length > self._most:
            raise ValueError("a body in chunks is too long")
        self._is_trailer = not length
        self._left = length + 2 if length else 0
        return False


def is_coded(head: bytes) -> bool:
    """Tell whether a request's body comes in some code, chunks or other."""
    return _CODED.search(head) is not None


def is_in_chunks(head: bytes) -> bool:
    """Tell whether the body after a request's head comes in chunks, and in no other code."""
    return len(_CODED.findall(head)) == 1 and _IN_CHUNKS.search(head) is not None


def with_length(head: bytes, length: int) -> bytes:
    """Return a head that tells the length of its body, instead of that it comes in chunks."""
    return _IN_CHUNKS.sub(b"\r\nContent-Length: %d" % length, head, count=1)
