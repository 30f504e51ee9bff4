"""Consoles are shared among all who look, and end with the guest."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from common.errors import Conflict, NodeFailure, NotFound
from common.names import InstanceId, KeyId, NodeName
from common.noderpc.instances import NoConsole
from common.tls.context import Peer
from noded.guest_console import RECENT_BYTES, GuestConsoles
from noded.handlers.console import ConsoleStream
from noded.hypervisor.interface import Console

WEB1 = InstanceId("11111111-0000-4000-8000-000000000001")
GONE = InstanceId("22222222-0000-4000-8000-000000000002")
DOWN = InstanceId("33333333-0000-4000-8000-000000000003")
DEAD = InstanceId("44444444-0000-4000-8000-000000000004")
MASTER = Peer(NodeName("alpha"), KeyId("a" * 64))
OTHER = Peer(NodeName("beta"), KeyId("b" * 64))


class Guest:
    """The serial port of a QEMU: it takes one listener at a time."""

    def __init__(self, directory: Path) -> None:
        self.socket = directory / "serial.sock"
        self.listeners: list[asyncio.StreamWriter] = []
        self.typed = bytearray()
        self.most_listeners = 0
        self.watched: list[InstanceId] = []
        self.is_stuck = False
        self._changed = asyncio.Condition()
        self._server: asyncio.Server | None = None

    async def boot(self) -> None:
        self._server = await asyncio.start_unix_server(self._serve, self.socket)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.listeners.append(writer)
        self.most_listeners = max(self.most_listeners, len(self.listeners))
        await self._notify()
        while data := await reader.read(1000):
            self.typed += data
            await self._notify()
        self.listeners.remove(writer)
        writer.close()
        await self._notify()

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10), self._changed:
            await self._changed.wait_for(condition)

    async def say(self, data: bytes) -> None:
        await self.until(lambda: bool(self.listeners))
        self.listeners[0].write(data)
        await self.listeners[0].drain()

    async def end(self) -> None:
        if self._server:
            self._server.close()
        for writer in self.listeners:
            writer.close()
        await self.until(lambda: not self.listeners)

    async def watch(self, instance: InstanceId) -> None:
        await self.until(lambda: bool(self.listeners))  # so nothing that it writes is lost
        self.watched.append(instance)
        if self.is_stuck:
            raise NodeFailure("It does not answer.")

    async def find(self, instance: InstanceId) -> Console:
        if instance == WEB1:
            return self.socket
        if instance == DOWN:
            return NoConsole(message="web3 is not running.")
        if instance == DEAD:
            return self.socket.with_name("nothing")
        raise NotFound("The instance is not on this node.")


Scenario = Callable[[Guest, GuestConsoles], Awaitable[None]]


def run(directory: Path, scenario: Scenario) -> None:
    async def main() -> None:
        guest = Guest(directory)
        await guest.boot()
        consoles = GuestConsoles(guest.find, guest.watch)
        await scenario(guest, consoles)
        await consoles.close()
        await guest.end()

    asyncio.run(main())


def test_bytes_go_both_ways(tmp_path: Path) -> None:
    async def scenario(guest: Guest, consoles: GuestConsoles) -> None:
        async with consoles.view(WEB1) as view:
            await guest.say(b"login: ")
            assert await view.read() == b"login: "
            await view.write(b"root\n")
            await guest.until(lambda: guest.typed == b"root\n")

    run(tmp_path, scenario)


def test_all_lookers_share_one_connection(tmp_path: Path) -> None:
    async def scenario(guest: Guest, consoles: GuestConsoles) -> None:
        async with consoles.view(WEB1) as first:
            await guest.say(b"login: ")
            assert await first.read() == b"login: "
            async with consoles.view(WEB1) as second:
                assert await second.read() == b"login: "  # what the first saw before
                await guest.say(b"hello")
                assert (await first.read(), await second.read()) == (b"hello", b"hello")
            await guest.say(b"again")
            assert await first.read() == b"again"
        await guest.until(lambda: not guest.listeners)
        assert guest.most_listeners == 1

    run(tmp_path, scenario)


def test_console_can_be_opened_again(tmp_path: Path) -> None:
    async def scenario(guest: Guest, consoles: GuestConsoles) -> None:
        for _ in range(3):
            async with consoles.view(WEB1) as view:
                await guest.say(b"hello")
                assert await view.read() == b"hello"
            await guest.until(lambda: not guest.listeners)

    run(tmp_path, scenario)


def test_end_of_the_guest_ends_every_view(tmp_path: Path) -> None:
    async def scenario(guest: Guest, consoles: GuestConsoles) -> None:
        async with consoles.view(WEB1) as first, consoles.view(WEB1) as second:
            await guest.say(b"bye")
            assert await first.read() == b"bye"
            await guest.end()
            assert await first.read() == b""
            assert await second.read() == b"bye"
            assert await second.read() == b""
            await first.write(b"too late")

    run(tmp_path, scenario)


def test_slow_looker_holds_nobody_up(tmp_path: Path) -> None:
    async def scenario(guest: Guest, consoles: GuestConsoles) -> None:
        async with consoles.view(WEB1) as quick, consoles.view(WEB1) as slow:
            seen = 0
            for _ in range(30):
                await guest.say(b"x" * 100_000)
                while seen < 3_000_000 and (data := await quick.read()):
                    seen += len(data)
                    if seen % 100_000 == 0:
                        break
            assert seen == 3_000_000
            assert len(await slow.read()) == 1 << 20
            async with consoles.view(WEB1) as late:
                assert len(await late.read()) == RECENT_BYTES

    run(tmp_path, scenario)


def test_guest_without_a_console_is_told(tmp_path: Path) -> None:
    async def look(consoles: GuestConsoles, instance: InstanceId) -> None:
        async with consoles.view(instance):
            pass

    async def scenario(guest: Guest, consoles: GuestConsoles) -> None:
        with pytest.raises(NotFound, match="not on this node"):
            await look(consoles, GONE)
        with pytest.raises(Conflict, match="web3 is not running"):
            await look(consoles, DOWN)
        with pytest.raises(NodeFailure, match="does not answer: No such file"):
            await look(consoles, DEAD)

    run(tmp_path, scenario)


# From here on: over HTTP.


def check(caller: Peer | None, allowed: Collection[Peer]) -> None:
    if caller not in allowed:
        raise Conflict("It may not look.")


@asynccontextmanager
async def served(
    consoles: GuestConsoles, caller: Peer | None
) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    stream = ConsoleStream(consoles, lambda _, peer: check(peer, {MASTER}))
    async with serving(stream, caller) as opened:
        yield opened


@asynccontextmanager
async def serving(
    stream: ConsoleStream, caller: Peer | None
) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        return await stream.serve(request, caller)

    http = web.Server(handle)
    server = await asyncio.get_running_loop().create_server(http, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        async with aiohttp.ClientSession() as session:
            yield session, f"http://127.0.0.1:{port}"
    finally:
        server.close()
        await http.shutdown(1)


def test_stream_relays_and_ends_with_a_sentence(tmp_path: Path) -> None:
    async def scenario(guest: Guest, consoles: GuestConsoles) -> None:
        async with (
            served(consoles, MASTER) as (session, url),
            session.ws_connect(f"{url}/console/{WEB1}") as socket,
        ):
            await guest.say(b"login: ")
            assert await socket.receive_bytes() == b"login: "
            await socket.send_bytes(b"root\n")
            await guest.until(lambda: guest.typed == b"root\n")
            await guest.end()
            last = await socket.receive()
            assert (last.type, last.extra) == (aiohttp.WSMsgType.CLOSE, "The console has ended.")

    run(tmp_path, scenario)


def test_who_may_not_look_any_more_is_sent_away(tmp_path: Path) -> None:
    async def scenario(guest: Guest, consoles: GuestConsoles) -> None:
        allowed = {MASTER, OTHER}
        stream = ConsoleStream(consoles, lambda _, peer: check(peer, allowed))
        async with (
            serving(stream, MASTER) as (one, here),
            serving(stream, OTHER) as (two, there),
            one.ws_connect(f"{here}/console/{WEB1}") as stays,
            two.ws_connect(f"{there}/console/{WEB1}") as goes,
        ):
            await guest.say(b"login: ")
            assert await goes.receive_bytes() == await stays.receive_bytes() == b"login: "
            allowed.remove(OTHER)
            await stream.end_refused()
            last = await goes.receive()
            assert (last.type, last.extra) == (aiohttp.WSMsgType.CLOSE, "It may not look.")
            await guest.say(b"root")
            assert await stays.receive_bytes() == b"root"

    run(tmp_path, scenario)


def test_stream_lets_go_when_the_looker_leaves(tmp_path: Path) -> None:
    async def scenario(guest: Guest, consoles: GuestConsoles) -> None:
        async with served(consoles, MASTER) as (session, url):
            async with session.ws_connect(f"{url}/console/{WEB1}"):
                await guest.until(lambda: bool(guest.listeners))
            await guest.until(lambda: not guest.listeners)

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("caller", "path", "status", "code"),
    [
        (None, WEB1, 409, "conflict"),
        (OTHER, WEB1, 409, "conflict"),
        (MASTER, GONE, 404, "not-found"),
        (MASTER, DOWN, 409, "conflict"),
        (MASTER, "../../etc/passwd", 400, "invalid-request"),
        (MASTER, "", 400, "invalid-request"),
    ],
)
def test_stream_refuses_in_json(
    tmp_path: Path, caller: Peer | None, path: str, status: int, code: str
) -> None:
    async def scenario(guest: Guest, consoles: GuestConsoles) -> None:
        async with served(consoles, caller) as (session, url):
            upgrade = {
                "Connection": "Upgrade", "Upgrade": "websocket",
                "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg==",
            }  # fmt: skip
            async with session.get(f"{url}/console/{path}", headers=upgrade) as response:
                told = await response.json()
                assert (response.status, told["error"]["code"]) == (status, code)

    run(tmp_path, scenario)


def test_plain_request_is_refused(tmp_path: Path) -> None:
    async def scenario(guest: Guest, consoles: GuestConsoles) -> None:
        async with (
            served(consoles, MASTER) as (session, url),
            session.get(f"{url}/console/{WEB1}") as response,
        ):
            assert (response.status, "WebSocket" in await response.text()) == (400, True)

    run(tmp_path, scenario)


def test_a_guest_hears_that_somebody_begins_to_look_and_not_of_others(tmp_path: Path) -> None:
    async def scenario(guest: Guest, consoles: GuestConsoles) -> None:
        async with consoles.view(WEB1), consoles.view(WEB1):
            assert guest.watched == [WEB1]
        async with consoles.view(WEB1):
            assert guest.watched == [WEB1, WEB1]

    run(tmp_path, scenario)


def test_a_guest_that_does_not_hear_it_is_not_shown(tmp_path: Path) -> None:
    async def scenario(guest: Guest, consoles: GuestConsoles) -> None:
        guest.is_stuck = True
        with pytest.raises(NodeFailure, match="does not answer"):
            async with consoles.view(WEB1):
                pass
        await guest.until(lambda: not guest.listeners)
        guest.is_stuck = False
        async with consoles.view(WEB1):
            pass

    run(tmp_path, scenario)
