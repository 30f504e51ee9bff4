"""How messages follow one another on the LUXI socket: JSON text, then the byte 0x03.

The byte cannot occur inside JSON, which escapes control characters.
"""

from common.errors import InvalidRequest

END = b"\x03"
LARGEST = 64 * 2**20  # bytes; a list of 10,000 instances with all fields is a third of it


def frame(text: bytes) -> bytes:
    """Return what goes over the socket for one JSON text."""
    return text + END


class Decoder:
    """Cuts a stream of bytes into messages, however the bytes arrive."""

    def __init__(self, largest: int = LARGEST) -> None:
        """Refuse messages of more than ``largest`` bytes."""
        self._largest = largest
        self._pending = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes and return the messages they complete, oldest first.

        Raises:
            InvalidRequest: a message is too large. The stream cannot be read any further.
        """
        first, *others = data.split(END)
        if not others:
            self._pending += first
            self._check_size(len(self._pending))
            return []
        messages = [bytes(self._pending) + first, *others[:-1]]
        self._pending = bytearray(others[-1])
        for size in (*map(len, messages), len(self._pending)):
            self._check_size(size)
        return messages

    def _check_size(self, size: int) -> None:
        if size > self._largest:
            raise InvalidRequest(f"A LUXI message may have {self._largest} bytes, not more.")
