"""One connection to a node: TLS, and as much of HTTP/1.1 as noded speaks (RFC 9112).

By hand, because importing aiohttp is half of what a coordinator does until it is there, and
while one takes over, nobody is master. There is one server to talk to, and it tells the length
of all its answers.
"""

import asyncio
import ssl
from collections.abc import Mapping
from hashlib import sha256
from typing import Self

LARGEST = 64 * 2**20  # bytes of an answer; noded sends pages of 4 MiB


class Connection:
    """Carries one call at a time. After a failure, or a call that was given up, ``abort`` it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
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
    def is_usable(self) -> bool:
        """Whether another call may be tried; the node may be closing it this very moment."""
        return self.is_open and not (self._reader.at_eof() or self._writer.is_closing())

    async def put(self, path: str, host: str, headers: Mapping[str, str], body: bytes) -> bytes:
        """Send a request and return the body of its answer, whatever its status.

        Raises:
            OSError: the connection broke, or what came was no answer.
        """
        head = [f"PUT {path} HTTP/1.1", f"Host: {host}", "Content-Type: application/json"]
        head += [f"Content-Length: {len(body)}", *(f"{key}: {headers[key]}" for key in headers)]
        # Not drained: a node that refuses a large body answers before it has read all of it.
        self._writer.write("\r\n".join([*head, "\r\n"]).encode("ascii") + body)
        try:
            text = await self._reader.readuntil(b"\r\n\r\n")
            length, self.is_open = _read_head(text)
            answer = await self._reader.readexactly(length)
        except asyncio.IncompleteReadError as error:
            raise ConnectionResetError("the node hung up before it answered") from error
        except (ValueError, asyncio.LimitOverrunError) as error:
            raise ConnectionResetError(f"what came is no answer of noded: {error}") from error
        self.used_s = asyncio.get_running_loop().time()
        return answer

    def abort(self) -> None:
        """Close it at once: a late answer must not be taken for the next one."""
        self.is_open = False
        self._writer.transport.abort()


def _read_head(text: bytes) -> tuple[int, bool]:
    """Return how long the body is, and whether the connection can be used afterwards.

    Raises:
        ValueError: it does not say, or is nothing of HTTP/1.1.
    """
    status, *lines = text.decode("latin-1").split("\r\n")
    if not status.startswith("HTTP/1.1 "):
        raise ValueError(f"it begins with {status[:40]!r}")
    pairs = (line.partition(":") for line in lines)
    fields = {key.lower(): value.strip() for key, _, value in pairs}
    length = fields.get("content-length", "")
    if not length.isdecimal() or int(length) > LARGEST:
        raise ValueError(f"its length is {length[:40] or 'not told'}")
    return int(length), fields.get("connection", "").lower() != "close"
