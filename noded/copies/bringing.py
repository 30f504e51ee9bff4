"""The side of a copy between clusters that brings what is on a disk to who expects it."""

import socket
from contextlib import closing
from pathlib import Path

from common.errors import NodeFailure
from common.tls.context import stranger_context
from noded.copies.confirmation import see_confirmed
from noded.copies.door import knows
from noded.copies.fetching import CONNECT_S
from noded.copies.frames import DEAD_AFTER_S, Heard, Hello, Line
from noded.copies.orders import Bringing
from noded.copies.served import serving
from noded.copies.status import Status


class Bringer:
    """Sends a disk to the one node of another cluster that is meant to have it, once."""

    def __init__(self, order: Bringing) -> None:
        """Load what needs rights that are given up afterwards."""
        self._order = order
        self._context = stranger_context(Path(order.identity), order.peer.certificate, serves=False)
        self._status = Status(order.status)
        self._serving = serving(order, begin=self._status.begin, advance=self._status.advance)

    def run(self) -> None:
        """Send what is missing there, and leave word of how it ended."""
        peer = self._order.peer.name
        with self._status.of_connection(peer), closing(self._connect()) as line:
            hello = line.hear(Hello)
            if not knows(hello, self._order.offer.secret):
                raise NodeFailure(f"Who answers for {peer} expects another disk.")
            if not hello.is_done:
                verdict = self._serving.serve(line, hello)
                if verdict.problem:
                    raise NodeFailure(f"{peer}: {verdict.problem}")
            self._see_let_go(line)
            line.say(Heard())
            self._status.succeed()

    def _see_let_go(self, line: Line) -> None:
        """Return when the other side may hear that all is known to be there."""
        if self._order.confirmation is None:
            self._status.succeed()  # nobody else says so before it is heard
            return
        self._status.arrive()
        so_far = f"{self._order.peer.name} has all of {self._order.path}"
        see_confirmed(self._order.confirmation, so_far, go_on=line.see_silent)

    def _connect(self) -> Line:
        place = (self._order.host, self._order.offer.port)
        connection = socket.create_connection(place, timeout=CONNECT_S)
        line = Line(self._context.wrap_socket(connection))
        line.wait_for(DEAD_AFTER_S)
        return line
