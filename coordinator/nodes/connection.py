"""One connection to a node: TLS, and as much of HTTP/1.1 as noded speaks (RFC 9112).

By hand, because importing aiohttp is half of what a coordinator does until it is there, and
while one takes over, nobody is master. There is one server to talk to, and it tells the length
of all its answers.
"""

import asyncio
import ssl
from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple, Self

from common.errors import BadAnswer
from common.names import KeyId
from common.rpc.clock import SHOWN, Reading
from common.rpc.declare import CallSpec
from common.rpc.server import Reply
from common.tls.certificate import read_certificate

NEVER_ANSWERED = (
    ", and on a new connection, as if our certificate were not valid there: its log says why; "
    "compare the clocks of both nodes"
)


class Connection:
    """Carries one call at a time. After a failure, or a call that was given up, ``abort`` it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._has_answered = False
        self.is_open = True  # as far as the answers tell
        self.used_s = asyncio.get_running_loop().time()  # when last

    @classmethod
    async def open(cls, host: str, port: int, context: ssl.SSLContext, name: str) -> Self:
        """Connect to an address; the certificate there has to be ``name``'s.

        Raises:
            ConnectionRefusedError: nobody listens.
            ssl.SSLCertVerificationError: it is not, unless ``context`` checks nothing.
            OSError: anything else.
        """
        return cls(*await asyncio.open_connection(host, port, ssl=context, server_hostname=name))

    @property
    def fingerprint(self) -> bytes:
        """The SHA-256 of the certificate that was shown."""
        certificate: bytes = self._writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return sha256(certificate).digest()

    @property
    def key(self) -> KeyId:
        """Which public key the node has proved to own."""
        certificate: bytes = self._writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return read_certificate(certificate).key

    @property
    def is_usable(self) -> bool:
        """Whether another call may be tried; the node may be closing it this very moment."""
        return self.is_open and not (self._reader.at_eof() or self._writer.is_closing())

    async def put(
        self, call: CallSpec, host: str, headers: Mapping[str, str], body: bytes
    ) -> Reply:
        """Send a request and return its answer, whatever its status.

        Raises:
            BadAnswer: it is larger than answers to this call may be.
            OSError: the connection broke, or what came was no answer.
        """
        lines = [f"PUT {call.path} HTTP/1.1", f"Host: {host}", "Content-Type: application/json"]
        lines += [f"Content-Length: {len(body)}", *(f"{key}: {headers[key]}" for key in headers)]
        # Not drained: a node that refuses a large body answers before it has read all of it.
        self._writer.write("\r\n".join([*lines, "\r\n"]).encode("ascii") + body)
        try:
            text = await self._reader.readuntil(b"\r\n\r\n")
            head = _read_head(text)
            if head.length > call.largest_answer:
                raise BadAnswer(
                    f"{host} answered {call.name} with {head.length} bytes, and "
                    f"{call.largest_answer} are the most that are read."
                )
            body = await self._reader.readexactly(head.length)
        except asyncio.IncompleteReadError as error:
            # In TLS 1.3 that is all one sees of a node that does not accept one's certificate.
            why = "" if self._has_answered else NEVER_ANSWERED
            raise ConnectionResetError(f"the node hung up before it answered{why}") from error
        except (ValueError, asyncio.LimitOverrunError) as error:
            raise ConnectionResetError(f"what came is no answer of noded: {error}") from error
        self.used_s = asyncio.get_running_loop().time()
        self._has_answered = True
        self.is_open = head.is_kept
        return Reply(head.status, body, head.shown)

    def abort(self) -> None:
        """Close it at once: a late answer must not be taken for the next one."""
        self.is_open = False
        self._writer.transport.abort()


class _Head(NamedTuple):
    status: int
    length: int  # of the body
    is_kept: bool  # whether the connection can be used afterwards
    shown: Reading | None


def _read_head(text: bytes) -> _Head:
    """Read all that matters of an answer before its body.

    Raises:
        ValueError: it does not say how long that is, or is nothing of HTTP/1.1.
    """
    first, *lines = text.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    status = rest[:3]
    if version != "HTTP/1.1" or not (status.isascii() and status.isdecimal()):
        raise ValueError(f"it begins with {first[:40]!r}")
    pairs = (line.partition(":") for line in lines)
    fields = {key.lower(): value.strip() for key, _, value in pairs}
    length = fields.get("content-length", "")
    if not (length.isascii() and length.isdecimal()) or len(length) > 18:
        raise ValueError(f"its length is {length[:40] or 'not told'}")
    shown = fields.get(SHOWN.lower())
    return _Head(
        int(status),
        int(length),
        fields.get("connection", "").lower() != "close",
        None if shown is None else Reading.parse(shown),
    )
