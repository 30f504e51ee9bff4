"""A socket to DRBD's module: messages go, and answers come, until all of them have.

Source: linux/genetlink.h, linux/netlink.h of Linux 6.1.
"""

import socket
import struct
from collections.abc import Iterator
from typing import Self

from common.errors import NodeFailure
from noded.storage.drbd.messages import (
    NO_MINOR,
    REPLY,
    Message,
    pack,
    read_message,
    request,
    split,
    unpack_all,
)
from noded.storage.drbd.module import InUse

FAMILY = "drbd"
ANSWER_S = 50.0  # a disk that hangs must not be waited for without end
NO_ERROR = 101
DONE = (NO_ERROR, 1, 2)  # a state was changed, or was so before
UNKNOWN_DIGEST, NO_SUCH_RESOURCE, HELD_OPEN = 120, 158, -12

_GENERIC = 16  # of the protocols of netlink
_CONTROL, _GET_FAMILY, _FAMILY_ID, _FAMILY_NAME, _FAMILY_VERSION = 0x10, 3, 1, 2, 3
_REQUEST, _ACK, _DUMP = 1, 4, 0x300
_ERROR, _DONE = 2, 3
_LARGEST = 1 << 20


class DigestUnknown(NodeFailure):
    """The kernel cannot check that a peer knows a secret."""

    code = "node-failure.digest-unknown"


class Line:
    """A socket to the module, which speaks one language."""

    def __init__(self, version: int) -> None:
        """Find the module; ``version`` is that of its language: 1 of DRBD 8.4, 2 of DRBD 9.

        Raises:
            NodeFailure: it is not loaded, or speaks another language.
        """
        self._spoken = version
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _GENERIC)
        self._socket.settimeout(ANSWER_S)
        self._socket.bind((0, 0))
        name = pack(_FAMILY_NAME, FAMILY.encode() + b"\0")
        asked = struct.pack("=BBH", _GET_FAMILY, 1, 0) + name
        answers = [dict(unpack_all(each[4:])) for each in self._exchange(_CONTROL, asked, _REQUEST)]
        found = answers[0] if answers else {}
        self._family = int.from_bytes(found.get(_FAMILY_ID, b""), "little")
        self._version = int.from_bytes(found.get(_FAMILY_VERSION, b""), "little")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, command: int, minor: int = NO_MINOR) -> Message | None:
        """Return what the module says of one thing, if there is such a one."""
        said = next(iter(self._ask(command, minor, b"", _REQUEST)), None)
        return said if said and said.code == NO_ERROR else None

    def every(self, command: int) -> list[Message]:
        """Return what the module says of all things of a kind."""
        return self._ask(command, NO_MINOR, b"", _REQUEST | _DUMP)

    def change(
        self,
        command: int,
        parts: bytes,
        what: str,
        *,
        minor: int = NO_MINOR,
        fine: tuple[int, ...] = (),
    ) -> None:
        """Have something changed; ``what`` says it in a refusal, and answers in ``fine`` are.

        Raises:
            DigestUnknown: the kernel has no such HMAC.
            InUse: something has the device open.
            NodeFailure: the module refused.
        """
        for said in self._ask(command, minor, parts, _REQUEST | _ACK):
            if said.code == UNKNOWN_DIGEST:
                raise DigestUnknown("This node's kernel has no HMAC for DRBD to use.")
            if said.code == HELD_OPEN:
                raise InUse(f"DRBD refused to {what}: the device is in use.")
            if said.code not in (*DONE, *fine):
                raise _refusal(what, said)

    def _ask(self, command: int, minor: int, parts: bytes, flags: int) -> list[Message]:
        if not self._family:
            raise NodeFailure("DRBD's kernel module is not loaded on this node.")
        if self._version != self._spoken:
            raise NodeFailure(
                "DRBD's kernel module is of another version than it was; try again, and if that "
                "does not help, find out with “cat /proc/drbd” which one is loaded."
            )
        asked = request(command, minor, parts, version=self._spoken)
        return [read_message(each) for each in self._exchange(self._family, asked, flags)]

    def _exchange(self, family: int, payload: bytes, flags: int) -> Iterator[bytes]:
        """Send a message, and yield what comes back, until all of it has."""
        self._socket.send(struct.pack("=IHHII", len(payload) + 16, family, flags, 1, 0) + payload)
        while True:
            for kind, body in split(self._socket.recv(_LARGEST)):
                if kind == _DONE:
                    return
                if kind == _ERROR:
                    (number,) = struct.unpack_from("=i", body)
                    if number and family != _CONTROL:
                        raise NodeFailure(f"DRBD's kernel module refused: error {-number}.")
                    return
                yield body
            if not flags & (_DUMP | _ACK):
                return


def _refusal(what: str, said: Message) -> NodeFailure:
    words = said.parts.get(REPLY, {}).get(1, b"").rstrip(b"\0").decode(errors="replace")
    return NodeFailure(f"DRBD refused to {what}: error {said.code} {words}".strip() + ".")
