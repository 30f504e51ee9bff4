"""``gnt-instance console``: this terminal becomes the instance's serial console.

A job tells where the instance runs; the stream then goes straight to that node, with this
node's certificate.
"""

import asyncio
import enum
import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from common.errors import Conflict, InvalidRequest, Unreachable
from common.names import KeyId
from common.paths import Paths
from coordinator.cli.connection import connect
from coordinator.cli.follow import follow
from coordinator.cli.parser import Parser
from coordinator.cli.refused import add_refused

MOVE_S = 10.0  # how long after its end here the guest may need to be found elsewhere
DETACH = b"\x1d"  # Ctrl-]
CONNECT_S = 20.0


class Ending(enum.Enum):
    """Why a console is not shown any more."""

    DETACHED = enum.auto()  # by the operator
    TIME_IS_UP = enum.auto()
    OVER_THERE = enum.auto()  # the node ended it


class Console(NamedTuple):
    """Where a console is reached."""

    instance: str
    uuid: str
    host: str
    port: int
    node: str
    key: KeyId  # that the node shows; empty if it is not known yet

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"https://{host}:{self.port}/console/{self.uuid}"


def console(command: str, words: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    parser = Parser(command, "Use an instance's serial console; Ctrl-] ends it.")
    parser.add_argument("instance", metavar="INSTANCE", help="its name; it has to run")
    add_refused(parser, command)
    parser.add_argument("--show-cmd", action="store_true", help="only tell where the console is")
    parser.add_argument("--seconds", type=float, metavar="N", help="end by itself after N seconds")
    options = parser.parse_args(words)
    where = find(options.instance)
    if options.show_cmd:
        print(f"{where.url} (node {where.node})")
        return 0
    end = math.inf if options.seconds is None else time.monotonic() + options.seconds
    _tell(f"Console of {where.instance} on {where.node}; Ctrl-] ends it.")
    while True:
        with _raw_terminal():
            ending = asyncio.run(attach(where, end - time.monotonic()))
        if ending is not Ending.OVER_THERE:
            break
        moved = _find_again(where, end)
        if moved is None:
            _tell(f"\nThe console has ended: {where.instance} does not run any more.")
            break
        where = moved
        _tell(f"\n{where.instance} has moved; this is its console on {where.node}.")
    if ending is Ending.DETACHED:
        _tell(f"\nDetached; {where.instance} goes on.")
    return 0


def find(instance: str) -> Console:
    """Ask where the console of an instance is.

    Raises:
        Conflict: the instance does not run.
        InvalidRequest: its kind of console cannot be used from here.
    """
    with connect() as client:
        job = client.call(
            "SubmitJob", [{"OP_ID": "OP_INSTANCE_CONSOLE", "instance_name": instance}]
        )
        end = follow(client, int(job), out=None)
    if end.failure:
        raise end.failure
    told: dict[str, Any] = end.results[0] if isinstance(end.results[0], dict) else {}
    if told.get("kind") != "stream":
        raise InvalidRequest(told.get("message") or f"{instance} has no console to use from here.")
    try:
        return Console(
            instance, told["uuid"], told["host"], told["port"], told["node"], told["key"]
        )
    except KeyError as error:
        raise InvalidRequest(
            f"The coordinator does not tell the {error.args[0]} of {instance}'s console; are both "
            "of the same version? “systemctl restart gantry-coordinator” has it run the one that "
            "is installed."
        ) from error


async def attach(where: Console, seconds: float) -> Ending:
    """Carry bytes between the terminal and the console; tell why that ended.

    Without a terminal, only from the console.

    Raises:
        Unreachable: the node does not answer, or refuses.
    """
    import aiohttp

    from common.tls.context import client_context, read_peer

    context = client_context(Paths().identity)
    limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=limits) as session,
            session.ws_connect(where.url, ssl=context, server_hostname=where.node) as stream,
        ):
            peer = read_peer(stream.get_extra_info("ssl_object"))
            if where.key and (peer is None or peer.key != where.key):
                raise Unreachable(
                    f"Who answers as {where.node} is an impostor: its key is another one than "
                    f"{where.node} is known by. Look who has the address {where.host}."
                )
            return await _carry(stream, seconds)
    except aiohttp.WSServerHandshakeError as error:
        raise Unreachable(
            f"Node {where.node} refuses the console of {where.instance} (HTTP {error.status})."
        ) from error
    except (aiohttp.ClientError, OSError) as error:
        raise Unreachable(f"The console of {where.instance} is out of reach: {error}.") from error


async def _carry(stream: Any, seconds: float) -> Ending:
    """Run both directions until one ends, or the time is up."""
    loop = asyncio.get_running_loop()
    typed: asyncio.Queue[bytes] = asyncio.Queue()
    if sys.stdin.isatty():
        loop.add_reader(sys.stdin.fileno(), lambda: typed.put_nowait(os.read(0, 4096)))
    try:
        async with asyncio.TaskGroup() as group:
            ways = [group.create_task(_show(stream)), group.create_task(_type(stream, typed))]
            done, others = await asyncio.wait(
                ways,
                timeout=None if seconds == math.inf else max(0.0, seconds),
                return_when=asyncio.FIRST_COMPLETED,
            )
            for other in others:
                other.cancel()
        return done.pop().result() if done else Ending.TIME_IS_UP
    finally:
        if sys.stdin.isatty():
            loop.remove_reader(sys.stdin.fileno())


async def _show(stream: Any) -> Ending:
    async for message in stream:
        data = message.data
        sys.stdout.buffer.write(data.encode() if isinstance(data, str) else data)
        sys.stdout.buffer.flush()
    return Ending.OVER_THERE


async def _type(stream: Any, typed: asyncio.Queue[bytes]) -> Ending:
    while True:
        data = await typed.get()
        before, detach, _ = data.partition(DETACH)
        if before:
            await stream.send_bytes(before)
        if detach or not data:
            return Ending.DETACHED


def _find_again(where: Console, end: float) -> Console | None:
    """Find out whether the instance has moved rather than stopped."""
    end = min(end, time.monotonic() + MOVE_S)
    while time.monotonic() < end:
        try:
            found = find(where.instance)
        except Conflict:
            return None
        if found.node != where.node:
            return found
        time.sleep(1)  # noqa: TID251 -- no loop runs here
    return None


def _tell(text: str) -> None:
    """Say something to whoever sits at the terminal."""
    if sys.stdin.isatty():
        print(text, file=sys.stderr)


@contextmanager
def _raw_terminal() -> Iterator[None]:
    """Pass every key on as it is, and put the terminal right again whatever happens."""
    if not sys.stdin.isatty():
        yield
        return
    import termios
    import tty

    before = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
