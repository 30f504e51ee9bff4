"""``gantry-monitor``: tells whoever asks how this node fares; HTTP, read-only, unprivileged."""

import argparse
import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path

import msgspec

from common import web
from common.errors import GntError, NodeFailure
from common.exposition import MEDIA, exposition
from common.places import Places, source_of
from common.ports import own_port
from common.printable import printable
from common.process_figures import process_figures
from common.systemd import Supervisor, log_to_standard_error
from common.version import VERSION
from noded.monitor.cpu_load import Samples, parse_stat
from noded.monitor.metrics import node_figures
from noded.monitor.reports import answer
from noded.monitor.sight import Eyes, Sight
from noded.monitor.volumes import FILE, VolumeFile

PORT = 1815  # of Ganeti's monitoring agent
EVERY_S = 5.0
GOODBYE_S = 0.5  # for answers under way; 0 would stand for ever
IDLE_S = 15.0  # until a connection is closed on which nothing is asked
MOST_VISITORS, MOST_FROM_ONE = 128, 16
BACKLOG = 1024  # connections that the kernel keeps for us
PROC = Path("/proc")
METRICS = "/metrics"

log = logging.getLogger(__name__)


def main() -> int:
    """Run the agent until SIGTERM or SIGINT; return the exit status."""
    options = _parser().parse_args()
    log_to_standard_error("gantry-monitor", "%(message)s")
    try:
        asyncio.run(_serve(options.address, options.port, options.every))
    except GntError as error:
        sys.stderr.write(printable(f"gantry-monitor: {error.message}\n"))
        return error.exit_code
    return 0


class Monitor:
    """Looks at the node now and then, and answers what is asked: looking costs no more for many."""

    def __init__(self, proc: Path = PROC, volumes: Path = FILE) -> None:
        self._statistics = proc / "stat"
        self._samples = Samples(os.sysconf("SC_CLK_TCK"))
        self._eyes = Eyes(proc, VolumeFile(volumes))
        self._sight = Sight()
        self._metrics: bytes | None = None  # of this sight, once somebody has asked

    def sample(self) -> None:
        """Look at the node.

        Raises:
            NodeFailure: the processors' counters cannot be read or understood.
        """
        try:
            text = self._statistics.read_text()
        except OSError as error:
            raise NodeFailure(f"Cannot read {self._statistics}: {error.strerror}.") from error
        self._samples.add(time.monotonic(), parse_stat(text))
        self._sight, self._metrics = self._eyes.look(self._samples.average()), None

    async def handle(self, request: web.BaseRequest) -> web.Response:
        """Answer a request; its body, if it has any, is not read."""
        if request.method not in {"GET", "HEAD"}:
            return web.Response(
                status=HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": "GET, HEAD"}
            )
        if request.path == METRICS:
            return web.Response(body=self._text(), headers={"Content-Type": MEDIA})
        try:
            document = answer(request.path, self._sight, time.time_ns())
        except KeyError:
            return web.Response(status=HTTPStatus.NOT_FOUND, text="There is no such report.\n")
        return web.Response(body=msgspec.json.encode(document), content_type="application/json")

    def _text(self) -> bytes:
        if self._metrics is None:
            self._metrics = exposition((*node_figures(self._sight), *process_figures()))
        return self._metrics


class Visitors(web.BoundedServer):
    """All connections; whoever comes when there are too many costs the greediest one its place."""

    def __init__(self, handle: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]) -> None:
        super().__init__(handle, idle_s=IDLE_S, most_body=0)
        self._places: Places[web.RequestHandler] = Places(MOST_VISITORS, MOST_FROM_ONE)

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        goes = self._places.take(handler, source_of(transport.get_extra_info("peername")[0]))
        if goes is not None and goes.transport:
            goes.transport.abort()

    def connection_lost(
        self, handler: web.RequestHandler, exc: BaseException | None = None
    ) -> None:
        super().connection_lost(handler, exc)
        self._places.leave(handler)


async def _serve(address: str | None, port: int, every_s: float) -> None:
    loop, stop, monitor = asyncio.get_running_loop(), asyncio.Event(), Monitor()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    monitor.sample()
    http = Visitors(monitor.handle)
    try:
        server = await loop.create_server(http, address, port, backlog=BACKLOG)
    except OSError as error:
        where = f"{address or 'all addresses'} port {port}"
        raise NodeFailure(f"Cannot listen on {where}: {error.strerror or error}.") from error
    supervisor = Supervisor()
    supervisor.tell("READY=1")
    log.info("gantry-monitor %s listens on %s port %d.", VERSION, address or "all addresses", port)
    try:
        while not stop.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), every_s)
            monitor.sample()
    finally:
        server.close()
        await http.shutdown(GOODBYE_S)
        supervisor.close()


def _seconds(text: str) -> float:
    if not 0.05 <= (value := float(text)) <= 60:  # also what is no number at all
        raise argparse.ArgumentTypeError(f"{text} is not between 0.05 and 60 seconds")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gantry-monitor",
        description="Tells how this node fares, to Prometheus and for hail --mond and hbal.",
    )
    parser.add_argument("--address", help="listen on this address only")
    parser.add_argument("--port", type=own_port, default=PORT, help=f"listen on this port ({PORT})")
    parser.add_argument(
        "--every",
        type=_seconds,
        default=EVERY_S,
        metavar="SECONDS",
        help=f"how often to look at the node ({EVERY_S:g})",
    )
    parser.add_argument("--version", action="version", version=f"gantry-monitor {VERSION}")
    return parser


if __name__ == "__main__":
    sys.exit(main())
