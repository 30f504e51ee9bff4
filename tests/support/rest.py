"""The REST interface of a simulated cluster, in the same loop, and a client of it."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from common.errors import GntError
from common.luxi.client import ConnectionLost, NoCoordinator
from common.tasks import Background
from coordinator.rapi.copy import Copy
from coordinator.rapi.events import Events
from coordinator.rapi.inside import Inside
from coordinator.rapi.limits import Limits
from coordinator.rapi.luxi import Luxi
from coordinator.rapi.reads import Sources
from coordinator.rapi.server import Clients
from coordinator.rapi.service import Service
from coordinator.rapi.users import Users, UsersFile
from coordinator.rapi.whereabouts import where
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.rapi import USERS, WRITER


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    text: bytes

    @property
    def value(self) -> Any:
        return json.loads(self.text)


class Listener:
    """Reads a stream of events."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self.head = ""
        self.last_id = ""

    async def begin(self) -> None:
        self.head = (await self._reader.readuntil(b"\r\n\r\n")).decode()

    async def next(self) -> tuple[str, Any]:
        """Return the kind of the next event, and what it says."""
        kind = ""
        while True:
            line = (await self._reader.readline()).decode()
            assert line, "the stream has ended"
            name, _, value = line.rstrip("\n").partition(": ")
            if name == "id":
                self.last_id = value
            elif name == "event":
                kind = value
            elif name == "data":
                return kind, json.loads(value)


class DirectLuxi(Luxi):
    """Asks the coordinator of a simulated cluster on alpha, without a socket."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        super().__init__(Path("/nowhere"))
        self._cluster = cluster
        self.asked: list[str] = []

    async def call_for(self, kind: Any, method: str, *args: Any, answer_s: float = 60.0) -> Any:
        self.asked.append(method)
        given = msgspec.json.decode(msgspec.json.encode(args))
        try:
            told = await self._cluster.master.luxi(method, *given)
        except ConnectionRefusedError as error:
            raise NoCoordinator(str(error)) from error
        except ConnectionResetError as error:
            raise ConnectionLost(str(error)) from error
        return msgspec.json.decode(msgspec.json.encode(told), type=kind)


class Rest:
    """A client, and what is behind the interface."""

    def __init__(self, port: int, copy: Copy, luxi: DirectLuxi) -> None:
        self.port, self.copy, self.luxi = port, copy, luxi
        self.noted: list[tuple[str, str, int]] = []  # path, user and status

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        user: tuple[str, str] | None = WRITER,
        **headers: str,
    ) -> Answer:
        """Ask on a connection of its own."""
        text = b"" if body is None else json.dumps(body).encode()
        told = {"Host": "rapi", "Connection": "close", "Content-Length": str(len(text))}
        if body is not None:
            told["Content-Type"] = "application/json"
        if user is not None:
            told["Authorization"] = "Basic " + base64.b64encode(":".join(user).encode()).decode()
        told |= {name.replace("_", "-"): value for name, value in headers.items()}
        head = "".join(f"{name}: {value}\r\n" for name, value in told.items())
        return await self.send(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + text)

    async def send(self, request: bytes) -> Answer:
        """Send bytes and read one answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(request)
        data = await reader.read()
        writer.close()
        return parse_answer(data)

    async def job(self, method: str, path: str, body: Any = None) -> Any:
        """Ask for what submits a job, and return the job when it has ended."""
        answer = await self.ask(method, path, body)
        assert answer.status == 200, answer.text
        while True:
            job = (await self.ask("GET", f"/2/jobs/{answer.value}")).value
            if job["status"] in {"success", "error", "canceled"}:
                return job
            await self.copy.changed()

    @asynccontextmanager
    async def listening(self, query: str = "", **headers: str) -> AsyncIterator["Listener"]:
        """Listen to events for the length of a block."""
        login = base64.b64encode(":".join(WRITER).encode()).decode()
        told = {"Host": "rapi", "Authorization": f"Basic {login}"}
        told |= {name.replace("_", "-"): value for name, value in headers.items()}
        head = "".join(f"{name}: {value}\r\n" for name, value in told.items())
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(f"GET /2/events{query} HTTP/1.1\r\n{head}\r\n".encode())
            listener = Listener(reader)
            await listener.begin()
            yield listener
        finally:
            writer.close()

    async def until_whole(self, *, is_whole: bool = True) -> None:
        while self.copy.is_whole is not is_whole:
            await self.copy.changed()


def parse_answer(data: bytes) -> Answer:
    head, _, text = data.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    return Answer(int(first.split()[1]), headers, text)


@asynccontextmanager
async def rest_of(
    cluster: SimulatedCluster, folder: Path, *, per_s: float = 0.0, is_closed: bool = False
) -> AsyncIterator[Rest]:
    """Serve for the length of a block; ``folder`` is for its users and what alpha knows."""
    loop, background = asyncio.get_running_loop(), Background()
    (folder / "users").write_text(USERS)
    ssconf = folder / "ssconf"
    ssconf.mkdir()
    (ssconf / "master_node").write_text("alpha\n")
    luxi = DirectLuxi(cluster)
    events = Events()
    copy, inside = Copy(luxi, events.changed, events.reset), Inside(luxi)

    def troubled() -> GntError:
        return where(ssconf, "alpha", copy.trouble)

    noted: list[tuple[str, str, int]] = []
    http = Clients(
        Service(
            Sources(copy, luxi, inside, cluster.now),
            events,
            Users(
                UsersFile(folder / "users", cluster.now),
                UsersFile(cluster.machines["alpha"].paths.cluster_rapi_users, cluster.now),
            ),
            Limits(per_s, loop.time),
            troubled,
            lambda request, user, status, _: noted.append((request.path, user, status)),
            is_closed=is_closed,
        ).handle
    )
    server = await loop.create_server(http, "127.0.0.1", 0)
    background.start(copy.run(), name="copy")
    background.start(inside.run(), name="figures of the coordinator")
    rest = Rest(server.sockets[0].getsockname()[1], copy, luxi)
    rest.noted = noted
    try:
        await rest.until_whole()
        yield rest
    finally:
        server.close()
        await http.shutdown(0)
        await background.close()


Scenario = Callable[[SimulatedCluster, Rest], Awaitable[None]]


def with_rest(folder: Path, scenario: Scenario, nodes: int = 3, **options: Any) -> None:
    """Begin with a cluster whose REST interface is asked."""

    async def run() -> None:
        async with (
            simulated_cluster(nodes=nodes, seed=1) as cluster,
            rest_of(cluster, folder, **options) as rest,
        ):
            await scenario(cluster, rest)

    simulate(run())
