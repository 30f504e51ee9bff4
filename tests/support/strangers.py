"""Whoever connects to a daemon and means no good, or nothing at all.

python -m tests.support.strangers PORT COUNT AT_ONCE SEED [IDENTITY | plain] [WAY ...]
"""

import asyncio
import ssl
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random

from common.tls.context import client_context
from tests.support.https_node import LOCALHOST

NO_NODE = "127.0.0.66"  # where one stranger comes from; others come from all over 127.0.66.0/24
HEAD = b" HTTP/1.1\r\nHost: beta\r\nGantry-Epoch: 1\r\nGantry-Call: a\r\n"
Way = Callable[[], Awaitable[None]]

HUGE = 60 << 20
STAY_S = 0.2


@dataclass
class Strangers:
    """Comes to one port in every lazy and hostile way.

    ``regular`` is the TLS context of a node that is no candidate; without it they have only one
    that shows no certificate.
    """

    port: int
    random: Random
    stay_s: float = STAY_S
    regular: ssl.SSLContext | None = None
    has_tls: bool = True
    only: tuple[str, ...] = ()
    came: Counter[str] = field(default_factory=Counter)

    async def come(self, count: int, *, at_once: int) -> None:
        """Come ``count`` times, ``at_once`` at the same time, in all ways in turn."""
        every = self._ways()
        ways = {name: every[name] for name in self.only or every}
        names = iter([list(ways)[number % len(ways)] for number in range(count)])

        async def one_after_the_other() -> None:
            for name in names:
                self.came[name] += 1
                with suppress(OSError, asyncio.IncompleteReadError):
                    await ways[name]()

        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(one_after_the_other())

    def _ways(self) -> dict[str, Way]:
        hello = client_hello()
        slow = [bytes((byte,)) for byte in hello[:20]]
        ways: dict[str, Way] = {
            "silent": self._plain,
            "slow bytes": lambda: self._plain(*slow),
            "garbage": lambda: self._plain(self.random.randbytes(2000)),
            "closed at once": lambda: self._plain(stays=False),
        }
        if not self.has_tls:
            return ways | {
                name: partial(self._plain, request) for name, request in requests(b"GET /").items()
            }
        context = self.regular or stranger_context()
        call = b"PUT /mastership/vote" if self.regular else b"PUT /join/accept"
        return ways | {
            "half a ClientHello": lambda: self._plain(hello[:100]),
            "a ClientHello, then nothing": lambda: self._plain(hello),
            "TLS without a certificate": lambda: self._tls(stranger_context(), b""),
            "idle TLS": lambda: self._tls(context, b""),
            **{
                name: partial(self._tls, context, request)
                for name, request in requests(call).items()
            },
        }

    def _source(self) -> tuple[str, int]:
        if self.random.random() < 0.5:
            return NO_NODE, 0
        return f"127.0.66.{self.random.randrange(1, 255)}", 0

    async def _plain(self, *pieces: bytes, stays: bool = True) -> None:
        _, writer = await asyncio.open_connection(LOCALHOST, self.port, local_addr=self._source())
        try:
            for piece in pieces:
                writer.write(piece)
                await asyncio.sleep(self.stay_s / len(pieces))
            if stays and not pieces:
                await asyncio.sleep(self.stay_s)
        finally:
            writer.transport.abort()

    async def _tls(self, context: ssl.SSLContext, request: bytes) -> None:
        async with asyncio.timeout(self.stay_s * 4):
            _, writer = await asyncio.open_connection(
                LOCALHOST, self.port, ssl=context, server_hostname="beta",
                local_addr=self._source(),
            )  # fmt: skip
        try:
            writer.write(request)
            await asyncio.sleep(self.stay_s)
        finally:
            writer.transport.abort()


def requests(line: bytes) -> dict[str, bytes]:
    """Return requests that nobody should have to take in, or wait for the end of."""
    head = line + HEAD
    return {
        "huge head": head + b"X: " + b"x" * (1 << 20),
        "many headers": head + b"X: y\r\n" * 100_000,
        "huge body": head + b"Content-Length: %d\r\n\r\n" % HUGE + bytes(4 << 20),
        "body without end": (
            head + b"Transfer-Encoding: chunked\r\n\r\n" + b"4\r\nabcd\r\n" * 100_000
        ),
        "half a body": head + b"Content-Length: 900\r\n\r\n{",
        "half a head": head,
    }


def stranger_context() -> ssl.SSLContext:
    """Return what speaks TLS, shows nothing and believes everything."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def client_hello() -> bytes:
    """Return the first message of a handshake."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        stranger_context().wrap_bio(incoming, outgoing).do_handshake()
    return outgoing.read()


def main() -> None:
    """Come as the command line says; print who came."""
    port, count, at_once, seed, *others = sys.argv[1:]
    how = others[0] if others else ""
    strangers = Strangers(
        int(port), Random(int(seed)), STAY_S, has_tls=how != "plain",
        regular=client_context(Path(how)) if how not in ("", "plain") else None,
        only=tuple(others[1:]),
    )  # fmt: skip
    asyncio.run(strangers.come(int(count), at_once=int(at_once)))
    sys.stdout.write(f"{dict(strangers.came)}\n")


if __name__ == "__main__":
    main()
