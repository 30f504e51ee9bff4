"""A socket to DRBD's module: messages go, and answers come, until all of them have.

Source: linux/genetlink.h, linux/netlink.h of Linux 6.1.
"""

import socket
import struct
import time
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
ANSWER_S = 50.0  # for what is not said; what the module itself waits for, it waits for in ``send``
NO_ERROR = 101
DONE = (NO_ERROR, 1, 2)  # a state was changed, or was so before
UNKNOWN_DIGEST, NO_SUCH_RESOURCE, HELD_OPEN = 120, 158, -12
# The module is just changing something of its own accord, as when a peer is lost, and wants to be
# asked again; that is over in a moment. So are the addresses of an end that has just been taken
# away: the module lets go of them after it has said that it is disconnected.
NOT_NOW = (-18, -19, 102, 103)
PAUSES_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 2.0)

# What the module says by its number alone, in the words of its programs.
_IN_WORDS = {
    102: "Local address(port) already in use",
    103: "Remote address(port) already in use",
    -1: "Multiple primaries not allowed by config",
    -2: "Need access to UpToDate data",
    -7: "Refusing to be Primary while peer is not outdated",
    -10: "State change was refused by peer node",
    -11: "Device is diskless, the requested operation requires a disk",
    -18: "In transient state, retry after next state change",
    -19: "Concurrent state changes detected and aborted",
}

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

        Blocks, and asks again for some seconds while the module changes something itself.

        Raises:
            DigestUnknown: the kernel has no such HMAC.
            InUse: something has the device open.
            NodeFailure: the module refused, or did not say whether it has done so.
        """
        answers = self._ask(command, minor, parts, _REQUEST | _ACK)
        for pause_s in PAUSES_S:
            if not any(said.code in NOT_NOW for said in answers):
                break
            time.sleep(pause_s)  # noqa: TID251 -- no loop runs in this thread
            answers = self._ask(command, minor, parts, _REQUEST | _ACK)
        if not answers:
            raise NodeFailure(f"DRBD was asked to {what}, and has not said that it did.")
        for said in answers:
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
        asked = struct.pack("=IHHII", len(payload) + 16, family, flags, 1, 0) + payload
        try:
            self._socket.send(asked)
        except OSError as error:
            raise NodeFailure(f"DRBD's kernel module cannot be asked: {error}.") from error
        while True:
            try:
                received = self._socket.recv(_LARGEST)
            except OSError as error:
                raise NodeFailure(f"DRBD's kernel module has not answered: {error}.") from error
            for kind, body in split(received):
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
    told = said.parts.get(REPLY, {}).get(1, b"").rstrip(b"\0").decode(errors="replace")
    words = told or _IN_WORDS.get(said.code, "")
    return NodeFailure(f"DRBD refused to {what}: error {said.code} {words}".strip() + ".")
