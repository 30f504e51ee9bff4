"""The side of a copy between clusters that waits for who brings the data, and writes it."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from common.errors import GntError
from common.tls.context import stranger_context
from noded.copies.confirmation import see_confirmed
from noded.copies.door import Door
from noded.copies.filling import Filling
from noded.copies.frames import DEAD_AFTER_S, Heard, Hello, Line, Verdict
from noded.copies.orders import Expecting
from noded.copies.serving import SYNC_S
from noded.copies.status import Status

CONFIRMED_S = 90.0  # in which one whose line broke comes again to hear that all is there


class Expecter:
    """Fills a disk; who brings the data may break off and come again."""

    def __init__(self, order: Expecting) -> None:
        """Load what needs rights that are given up afterwards."""
        self._order = order
        self._status = Status(order.status)
        self._is_there = self._is_heard = False  # all of it; and that, by who has brought it
        self._filling = Filling(order, self._status, order.peer.name)
        self._door: Door[Line] = Door(
            socket.socket(fileno=order.listener),
            stranger_context(Path(order.identity), order.peer.certificate, serves=True),
            _let_in,
        )

    def run(self) -> None:
        """Wait until all has come, and leave word of how it ended."""
        self._door.open()
        wait_s = self._order.wait_s
        while not (self._is_heard or self._status.is_final):
            line = self._door.wait(wait_s)
            if line is None:
                break
            self._receive(line)
            if self._filling.is_used_up and not self._is_there:
                break  # begun anew, another process waits here, with a script that is new, too
            wait_s = CONFIRMED_S if self._is_there else self._order.wait_s
        if self._is_there and (self._is_heard or self._order.confirmation is None):
            self._status.succeed()
        elif self._is_there or not (self._status.is_final or self._filling.is_used_up):
            told = f"Nobody has come from {self._order.peer.name} for {wait_s:.0f} seconds"
            what = " to hear that all is there." if self._is_there else "."
            self._status.fail(f"{told}{what}", is_final=True)
        self._door.close()

    def _receive(self, line: Line) -> None:
        with closing(line), self._status.of_connection(self._order.peer.name):
            if self._is_there and self._filling.is_used_up:
                self._see_confirmed(line)
                line.say(Hello(secret=self._order.secret, have=0, sum="", is_done=True))
            else:
                self._is_there = False  # until shown: it may begin anew
                self._fill(line)
                self._is_there = True
                self._see_confirmed(line)
                line.say(Verdict())
            line.stand_by(SYNC_S)  # for the other cluster to record that it lets go
            line.hear(Heard)
            self._is_heard = True

    def _fill(self, line: Line) -> None:
        with _telling(line):
            self._filling.fill(line, self._order.secret)
            self._filling.see_script_end()

    def _see_confirmed(self, line: Line) -> None:
        if self._order.confirmation is None:
            return
        self._status.arrive()
        try:
            with _telling(line):
                see_confirmed(self._order.confirmation, f"All of {self._order.path} has arrived")
        except GntError:
            self._is_there = False  # for nobody is to be told so any more
            raise


@contextmanager
def _telling(line: Line) -> Iterator[None]:
    """Tell who brings it why there is nothing of it."""
    try:
        yield
    except GntError as error:
        with suppress(OSError):  # who brings it may be gone
            line.say(Verdict(problem=error.message))
        raise


def _let_in(connection: ssl.SSLSocket) -> Line:
    """Take in who has shown the one certificate that TLS accepts here."""
    line = Line(connection)
    line.wait_for(DEAD_AFTER_S)
    return line
