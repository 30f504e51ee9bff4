"""The side of a copy that offers a disk to the one node that may have it."""

import socket
from contextlib import closing, suppress
from pathlib import Path

from common.errors import GntError
from common.tls.context import server_context
from noded.copies.door import Door, Visit, to_member
from noded.copies.frames import Garbled
from noded.copies.orders import Sending
from noded.copies.served import serving

IDLE_S = 3600.0  # until an offer lapses that nobody makes use of


class Sender:
    """Sends a disk to whoever the door lets in, as often as it is asked for."""

    def __init__(self, order: Sending) -> None:
        """Load what needs rights that are given up afterwards."""
        self._door: Door[Visit] = Door(
            socket.socket(fileno=order.listener),
            server_context(Path(order.identity)),
            to_member(order.peer, order.secret),
        )
        self._serving = serving(order)

    def run(self) -> None:
        """Serve until nobody has come for an hour, or this process is killed."""
        self._door.open()
        while visit := self._door.wait(IDLE_S):
            # One that breaks off comes again, if it still wants.
            with closing(visit.line), suppress(OSError, EOFError, Garbled, GntError):
                self._serving.serve(visit.line, visit.hello)
        self._door.close()
