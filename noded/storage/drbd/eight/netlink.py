"""Talk to DRBD's module by netlink: all devices in one look, and a secret on no command line.

``drbdsetup`` takes the secret of a connection as an argument, which every process of the node can
read while it runs; and it needs a process for each look, and three for a device to come and go.
What has options, or is refused for many reasons, is left to it.

Source: linux/drbd_genl.h, linux/genetlink.h, linux/netlink.h of Linux 6.1, for DRBD 8.4.
"""

import socket
import struct
from collections.abc import Iterator, Mapping
from typing import Self

from common.errors import NodeFailure
from noded.storage.drbd import messages
from noded.storage.drbd.messages import (
    NO_MINOR,
    REPLY,
    VERSION,
    Message,
    pack,
    read_message,
    split,
    unpack_all,
)
from noded.storage.drbd.module import InUse

FAMILY = "drbd"
ANSWER_S = 50.0  # a disk that hangs must not be waited for without end
GET_STATUS, NEW_MINOR, NEW_RESOURCE, CONNECT, DOWN = 2, 5, 7, 10, 27
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


def devices() -> tuple[Message, ...]:
    """Return what the module says of each device. Blocks, for no longer than the module takes.

    Raises:
        NodeFailure: there is no module, or it is none of 8.4.
    """
    with _Line() as line:
        return tuple(line.ask(GET_STATUS, NO_MINOR, flags=_REQUEST | _DUMP))


def device(minor: int) -> Message | None:
    """Return what the module says of one device, if there is such a one. Blocks."""
    with _Line() as line:
        said = next(iter(line.ask(GET_STATUS, minor, flags=_REQUEST)), None)
        return said if said and said.code == NO_ERROR else None


def connect(
    resource: str, own: tuple[str, int], peer: tuple[str, int], options: Mapping[int, bytes]
) -> None:
    """Have a device look for its peer. Blocks.

    Args:
        resource: whose connection it is.
        own: address and port of this node.
        peer: of the other one.
        options: of the connection, by their numbers in ``net_conf``.

    Raises:
        DigestUnknown: the kernel has no such HMAC.
        NodeFailure: the module refused.
    """
    parts = messages.connection(resource, own, peer, options)
    for said in _change(CONNECT, parts):
        if said.code == UNKNOWN_DIGEST:
            raise DigestUnknown("This node's kernel has no HMAC for DRBD to use.")
        if said.code not in DONE:
            raise _refusal(f"connect {resource}", said)


def create(resource: str, minor: int) -> None:
    """Make a device without volumes or a peer; one that is there stays. Blocks.

    Raises:
        NodeFailure: the module refused.
    """
    for said in (
        *_change(NEW_RESOURCE, messages.named(resource)),
        *_change(NEW_MINOR, messages.volume(resource), minor=minor),
    ):
        if said.code not in DONE:
            raise _refusal(f"make device {minor} for {resource}", said)


def remove(resource: str) -> None:
    """Take a device away, demoted, disconnected and detached; none is fine. Blocks.

    Raises:
        InUse: something has it open.
        NodeFailure: the module refused.
    """
    for said in _change(DOWN, messages.named(resource)):
        if said.code == HELD_OPEN:
            raise InUse(f"The device of {resource} is in use.")
        if said.code not in (*DONE, NO_SUCH_RESOURCE):
            raise _refusal(f"remove {resource}", said)


def _change(command: int, parts: bytes, *, minor: int = NO_MINOR) -> list[Message]:
    with _Line() as line:
        return line.ask(command, minor, parts, flags=_REQUEST | _ACK)


def _refusal(what: str, said: Message) -> NodeFailure:
    words = said.parts.get(REPLY, {}).get(1, b"").rstrip(b"\0").decode(errors="replace")
    return NodeFailure(f"DRBD refused to {what}: error {said.code} {words}".strip() + ".")


class _Line:
    """A socket to the module."""

    def __init__(self) -> None:
        """Find the module.

        Raises:
            NodeFailure: it is not loaded, or another one than is understood here.
        """
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

    def ask(self, command: int, minor: int, parts: bytes = b"", *, flags: int) -> list[Message]:
        """Return what the module answers."""
        if not self._family:
            raise NodeFailure("DRBD's kernel module is not loaded on this node.")
        if self._version != VERSION:
            raise NodeFailure("DRBD's kernel module is none of 8.4, which Linux itself has.")
        asked = messages.request(command, minor, parts)
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
