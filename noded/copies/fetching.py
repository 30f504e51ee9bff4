"""The side of a copy that fetches what is on another node's disk, and writes it."""

import socket
from pathlib import Path

from common.errors import NodeFailure
from common.tls.context import client_context, read_peer
from noded.copies.filling import Filling
from noded.copies.frames import Line, Verdict
from noded.copies.orders import Fetching
from noded.copies.status import Status

CONNECT_S = 10.0


class Fetcher:
    """Fills a disk; goes on from where another process of the same copy ended."""

    def __init__(self, order: Fetching) -> None:
        """Load what needs rights that are given up afterwards."""
        self._order = order
        self._context = client_context(Path(order.identity))
        self._status = Status(order.status)
        self._filling = Filling(order, self._status, order.peer.name)

    def run(self) -> None:
        """Fetch all that is missing, and leave word of how it ended."""
        with self._status.of_connection(self._order.peer.name):
            line = self._connect()
            self._filling.fill(line, self._order.offer.secret)
            self._status.succeed()
            line.say(Verdict())

    def _connect(self) -> Line:
        peer, place = self._order.peer, (self._order.host, self._order.offer.port)
        connection = socket.create_connection(place, timeout=CONNECT_S)
        secured = self._context.wrap_socket(connection, server_hostname=peer.name)
        shown = read_peer(secured)
        if shown is None or peer.key not in ("", shown.key):
            raise NodeFailure(f"Who answers for {peer.name} does not show the key of {peer.name}.")
        return Line(secured)
