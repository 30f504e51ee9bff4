"""``gantry-confd``: tells programs about the cluster, also when it has no master; UDP."""

import argparse
import asyncio
import logging
import signal
import socket
import sys
import time
from contextlib import suppress

from common.errors import GntError, NodeFailure
from common.paths import Paths
from common.ports import own_port
from common.printable import printable
from common.systemd import Supervisor, log_to_standard_error
from common.tasks import Background
from common.version import VERSION
from coordinator.confd.files import PublishedFiles
from coordinator.confd.service import Service

PORT = 1814  # of Ganeti's
LOOK_S = 0.2  # between looks at the files

log = logging.getLogger("gantry.confd")


def main() -> int:
    """Run the daemon until SIGTERM or SIGINT; return the exit status."""
    options = _parser().parse_args()
    log_to_standard_error("gantry-confd")
    try:
        asyncio.run(_serve(Paths(), options))
    except GntError as error:
        sys.stderr.write(printable(f"gantry-confd: {error.message}\n"))
        return error.exit_code
    return 0


class Answering(asyncio.DatagramProtocol):
    """Answers each datagram at once, or never: nothing is kept for who does not listen."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._transport: asyncio.DatagramTransport | None = None
        self._is_full = False

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]  # what it is for datagrams
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if self._transport is None or self._is_full:
            return
        reply = self._service.reply(data, time.time())
        if reply is not None:
            self._transport.sendto(reply, addr)

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False

    def error_received(self, exc: Exception) -> None:
        log.debug("an answer has not arrived: %s", exc)


async def _serve(paths: Paths, options: argparse.Namespace) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    service, files = Service(), PublishedFiles(paths.confd)
    service.known = files.read()
    listener = _bound(options.bind, options.port)
    port = listener.getsockname()[1]
    transport, _ = await loop.create_datagram_endpoint(lambda: Answering(service), sock=listener)
    supervisor, background = Supervisor(), Background()
    try:
        background.start(supervisor.tell_alive(), name="tell systemd that we are alive")
        ready = f"gantry-confd {VERSION} listens on port {port}"
        print(ready, flush=True)  # noqa: T201 -- the one line a starting daemon says
        supervisor.tell("READY=1", f"STATUS={ready}")
        while not stop.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), LOOK_S)
            service.known = await asyncio.to_thread(files.read)
        supervisor.tell("STOPPING=1")
    finally:
        transport.close()
        await background.close()
        supervisor.close()


def _bound(address: str | None, port: int) -> socket.socket:
    """Return a socket for datagrams to an address, or to all of this machine.

    Raises:
        NodeFailure: it is taken, or there is no such address.
    """
    try:
        if address is None and socket.has_dualstack_ipv6():
            bound = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            bound.bind(("::", port))
            return bound
        found = socket.getaddrinfo(address or "0.0.0.0", port, type=socket.SOCK_DGRAM)  # noqa: S104 -- whoever has the key may ask
        bound = socket.socket(found[0][0], socket.SOCK_DGRAM)
        bound.bind(found[0][4])
    except OSError as error:
        where = f"{address or 'all addresses'} port {port}"
        raise NodeFailure(f"Cannot listen on {where}: {error.strerror or error}.") from error
    return bound


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gantry-confd",
        description="Tells programs about the cluster, also when it has no master.",
    )
    parser.add_argument("-b", "--bind", metavar="ADDRESS", help="listen on this address only")
    parser.add_argument(
        "-p", "--port", type=own_port, default=PORT, help=f"listen on this UDP port ({PORT})"
    )
    parser.add_argument("--version", action="version", version=f"gantry-confd {VERSION}")
    return parser


if __name__ == "__main__":
    sys.exit(main())
