"""``gantry-rapi``: the REST interface of a cluster; HTTPS, unprivileged."""

import argparse
import asyncio
import logging
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import uvloop

from common import web
from common.errors import GntError
from common.paths import Paths
from common.ports import own_port
from common.printable import printable
from common.systemd import Supervisor, log_to_standard_error
from common.tasks import Background
from common.version import VERSION
from coordinator.rapi.access_log import AccessLog, common_line
from coordinator.rapi.certificate import Pair, ServerCertificate, ensure_certificate
from coordinator.rapi.copy import Copy
from coordinator.rapi.door import Door, bound
from coordinator.rapi.events import Events
from coordinator.rapi.inside import Inside
from coordinator.rapi.limits import Limits
from coordinator.rapi.luxi import Luxi
from coordinator.rapi.reads import Sources
from coordinator.rapi.server import MOST, Clients
from coordinator.rapi.service import Service
from coordinator.rapi.users import Users, UsersFile
from coordinator.rapi.whereabouts import where

PORT = 5080  # of Ganeti's
REFRESH_S = 5.0  # between looks at the certificate's files

GOODBYE_S = 0.5  # for answers under way; 0 would stand for ever, and streams have no end

log = logging.getLogger("gantry.rapi")


def main() -> int:
    """Run the daemon until SIGTERM or SIGINT; return the exit status."""
    options = _parser().parse_args()
    log_to_standard_error("gantry-rapi")
    try:
        uvloop.run(_serve(Paths(), options))
    except GntError as error:
        sys.stderr.write(printable(f"gantry-rapi: {error.message}\n"))
        return error.exit_code
    return 0


async def _serve(paths: Paths, options: argparse.Namespace) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    here = socket.gethostname()
    certificate = None if options.no_ssl else _certificate(paths, options, here)
    luxi, access, background = Luxi(paths.luxi_socket), AccessLog(paths.access_log), Background()
    events = Events()
    copy, inside = Copy(luxi, events.changed, events.reset), Inside(luxi)

    def note(request: web.BaseRequest, user: str, status: int, size: int) -> None:
        version = request.version
        asked = f"{request.method} {request.path_qs} HTTP/{version.major}.{version.minor}"
        host = (request.remote or "").removeprefix("::ffff:")
        access.note(common_line(host, user, asked, status, size))

    service = Service(
        Sources(copy, luxi, inside),
        events,
        Users(
            UsersFile(options.users or paths.rapi_users, time.time),
            UsersFile(paths.cluster_rapi_users, time.time),
        ),
        Limits(options.requests_per_second, loop.time),
        lambda: where(paths.ssconf, here, copy.trouble),
        note,
        is_closed=options.require_authentication,
    )
    http = Clients(service.handle, options.max_clients)
    listener = bound(options.bind, options.port)
    port = listener.getsockname()[1]
    supervisor = Supervisor()
    try:
        async with _open(http, listener, certificate):
            background.start(copy.run(), name="copy")
            background.start(inside.run(), name="figures of the coordinator")
            background.start(supervisor.tell_alive(), name="tell systemd that we are alive")
            ready = f"gantry-rapi {VERSION} listens on port {port}"
            print(ready, flush=True)  # noqa: T201 -- the one line a starting daemon says
            supervisor.tell("READY=1", f"STATUS={ready}")
            while not stop.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), REFRESH_S)
                if certificate is not None:
                    certificate.refresh()
            supervisor.tell("STOPPING=1")
    finally:
        await http.shutdown(GOODBYE_S)
        await background.close()
        await luxi.close()
        access.close()
        supervisor.close()


def _certificate(paths: Paths, options: argparse.Namespace, here: str) -> ServerCertificate:
    if options.ssl_cert is not None:
        return ServerCertificate([Pair(options.ssl_cert, options.ssl_key)], options.client_ca)
    ensure_certificate(paths.rapi_certificate, here)
    places = [Pair(paths.cluster_rapi_certificate), Pair(paths.rapi_certificate)]
    return ServerCertificate(places, options.client_ca)


@asynccontextmanager
async def _open(
    http: Clients, listener: socket.socket, certificate: ServerCertificate | None
) -> AsyncIterator[None]:
    """Let clients in for the length of a block."""
    if certificate is None:
        server = await asyncio.get_running_loop().create_server(http, sock=listener)
        try:
            yield
        finally:
            server.close()
        return
    door = Door(listener, http, certificate.context)
    door.open()
    try:
        yield
    finally:
        await door.close()


def _rate(text: str) -> float:
    if not 0 <= (value := float(text)) <= 1e6:  # also what is no number at all
        raise argparse.ArgumentTypeError(f"{text} is no rate")
    return value


def _clients(text: str) -> int:
    if not 1 <= (value := int(text)) <= 100_000:
        raise argparse.ArgumentTypeError(f"{text} is no number of clients")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gantry-rapi",
        description="The REST interface of a cluster, for Ganeti's clients, too.",
    )
    parser.add_argument("-b", "--bind", metavar="ADDRESS", help="listen on this address only")
    parser.add_argument(
        "-p", "--port", type=own_port, default=PORT, help=f"listen on this port ({PORT})"
    )
    parser.add_argument("--no-ssl", action="store_true", help="speak plain HTTP")
    parser.add_argument(
        "-C", "--ssl-cert", type=Path, metavar="FILE", help="certificate to show; PEM"
    )
    parser.add_argument(
        "-K", "--ssl-key", type=Path, metavar="FILE", help="its key, if it is not in the same file"
    )
    parser.add_argument(
        "--client-ca",
        type=Path,
        metavar="FILE",
        help="let users log in by certificates that these have signed; PEM",
    )
    parser.add_argument(
        "--users", type=Path, metavar="FILE", help="who may do what, in Ganeti's format"
    )
    parser.add_argument(
        "--require-authentication", action="store_true", help="let nobody read without a password"
    )
    parser.add_argument(
        "--max-clients", type=_clients, default=MOST, metavar="N", help=f"at once ({MOST})"
    )
    parser.add_argument(
        "--requests-per-second",
        type=_rate,
        default=0.0,
        metavar="N",
        help="that one address may make in the long run (0: as many as it likes)",
    )
    parser.add_argument("--version", action="version", version=f"gantry-rapi {VERSION}")
    return parser


if __name__ == "__main__":
    sys.exit(main())
