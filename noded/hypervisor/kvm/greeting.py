"""Who connects for a guest's memory shows that it was sent, before QEMU sees the connection.

QEMU reads from whoever connects, and one that says nothing can stop it for good. So noded
listens and connects itself, and hands over connections on which the other side has proved that
it knows the move's secret. A stranger costs some bytes for some seconds.

The target sends a challenge; the source answers with its HMAC under the secret. What follows on
the connection is QEMU's TLS with the same secret as its key.
"""

import asyncio
import contextlib
import hmac
import secrets
import socket

from common.errors import NodeFailure
from common.tasks import Background

GREETING_S = 5.0  # for both sides to say what they have to
MOST_UNKNOWN = 64  # connections of whom we do not know yet; one more, and the oldest has to go
ATTEMPTS, PAUSE_S = 5, 0.2  # to connect: in a crowd of strangers one may be pushed out
CHALLENGE_BYTES = 32
ANSWER_BYTES = 32
# A peer that lost its power says nothing any more: after this long the connection breaks.
DEAD_AFTER_S = 30


class Listener:
    """Waits on a port for the one who knows ``secret``; any number of others may come first."""

    def __init__(self, address: str, secret: str, background: Background) -> None:
        """Listen from now on.

        Raises:
            NodeFailure: ``address`` is not this node's.
        """
        self.secret = secret
        self._background = background
        self._known: asyncio.Future[socket.socket] = asyncio.get_running_loop().create_future()
        self._unknown: dict[socket.socket, asyncio.Task[None]] = {}  # oldest first
        try:
            self._socket = socket.create_server(
                (address, 0), family=_family(address), backlog=MOST_UNKNOWN
            )
        except OSError as error:
            raise NodeFailure(
                f"Cannot wait for memory on {address}: {error.strerror}.", address=address
            ) from error
        self._socket.settimeout(0)
        self.port: int = self._socket.getsockname()[1]

    async def accept(self) -> socket.socket:
        """Return the connection of who knows the secret, and listen no more."""
        accepting = self._background.start(self._accept_all(), name="wait for memory")
        try:
            return await self._known
        finally:
            for task in (accepting, *self._unknown.values()):
                task.cancel()
            await asyncio.wait([accepting])
            self.close()

    def close(self) -> None:
        """Give the port back."""
        self._socket.close()

    async def _accept_all(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                line, _ = await loop.sock_accept(self._socket)
            except OSError:  # it has gone again, or there are no descriptors just now
                await asyncio.sleep(PAUSE_S)
                continue
            if len(self._unknown) >= MOST_UNKNOWN:
                next(iter(self._unknown.values())).cancel()
            greeting = self._background.start(self._greet(line), name="greet who brings memory")
            self._unknown[line] = greeting
            await asyncio.sleep(0)  # to whoever has a turn: accepting by itself never waits

    async def _greet(self, line: socket.socket) -> None:
        """Keep the connection if the other side knows the secret, else close it."""
        try:
            line.settimeout(0)
            async with asyncio.timeout(GREETING_S):
                challenge = secrets.token_bytes(CHALLENGE_BYTES)
                await asyncio.get_running_loop().sock_sendall(line, challenge)
                answer = await _exactly(line, ANSWER_BYTES)
            _watch(line)
        except (OSError, EOFError, TimeoutError):
            return  # a stranger, or one whose network broke
        else:
            known = hmac.compare_digest(answer, _proof(self.secret, challenge))
            if known and not self._known.done():
                self._known.set_result(line)
        finally:
            self._unknown.pop(line, None)
            if not (
                self._known.done() and not self._known.cancelled() and self._known.result() is line
            ):
                line.close()


def cut(line: socket.socket) -> None:
    """Break a connection for all who have it: QEMU waits no more, whatever it waits for."""
    with contextlib.suppress(OSError):  # it is broken already
        line.shutdown(socket.SHUT_RDWR)


async def connect(host: str, port: int, secret: str) -> socket.socket:
    """Return a connection on which we have shown that we know the secret.

    Raises:
        NodeFailure: nobody is there, or who is there does not want us.
    """
    for attempt in range(ATTEMPTS):
        try:
            return await _connect(host, port, secret)
        except (OSError, EOFError, TimeoutError) as error:
            if attempt == ATTEMPTS - 1 or isinstance(error, ConnectionRefusedError):
                why = str(error) or "no answer"
                raise NodeFailure(
                    f"{host} port {port} does not take the memory: {why}.", host=host, port=port
                ) from error
        await asyncio.sleep(PAUSE_S)
    raise AssertionError("unreachable")


async def _connect(host: str, port: int, secret: str) -> socket.socket:
    loop = asyncio.get_running_loop()
    with contextlib.ExitStack() as undo:
        line = undo.enter_context(socket.socket(_family(host)))
        line.settimeout(0)
        async with asyncio.timeout(GREETING_S):
            await loop.sock_connect(line, (host, port))
            challenge = await _exactly(line, CHALLENGE_BYTES)
            await loop.sock_sendall(line, _proof(secret, challenge))
        _watch(line)
        undo.pop_all()
    return line


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _proof(secret: str, challenge: bytes) -> bytes:
    return hmac.digest(bytes.fromhex(secret), b"gantry move" + challenge, "sha256")


async def _exactly(line: socket.socket, length: int) -> bytes:
    received = b""
    while len(received) < length:
        part = await asyncio.get_running_loop().sock_recv(line, length - len(received))
        if not part:
            raise EOFError("the connection was closed")
        received += part
    return received


def _watch(line: socket.socket) -> None:
    """Have the kernel notice when the other side is gone without a word."""
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, DEAD_AFTER_S // 3)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, DEAD_AFTER_S // 3)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 2)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, DEAD_AFTER_S * 1000)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
