"""What one who brings a disk to another cluster believes of what it hears there."""

import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.names import NodeName
from common.noderpc.copies import Compression, Offer, Stranger
from common.tls.context import CERTIFICATE, stranger_context
from noded.copies.bringing import Bringer
from noded.copies.chunks import CHUNK
from noded.copies.confirmation import confirm
from noded.copies.frames import Heard, Hello, Kind, Line, Verdict, Welcome
from noded.copies.orders import Bringing
from noded.copies.status import Told, read_status
from noded.images.contents import Layout
from tests.support.https_node import LOCALHOST, TestCluster

SECRET = "5ec2e7"
LONG_S = 30.0


class Met:
    """Alpha, whose disk has two chunks, brings it to beta, which a test plays in a thread."""

    def __init__(self, root: Path, *, until_confirmed: bool = False) -> None:
        identities = {
            name: TestCluster(root / f"of-{name}").identity(name) for name in ("alpha", "beta")
        }
        certificates = {name: (path / CERTIFICATE).read_text() for name, path in identities.items()}
        self._context = stranger_context(identities["beta"], certificates["alpha"], serves=True)
        self._listener = socket.create_server((LOCALHOST, 0))
        self._disk, self._status = root / "disk", root / "status.json"
        self._disk.write_bytes(os.urandom(2 * CHUNK))
        files = (self._disk, self._status, root / "confirmation")
        self.opened = [os.open(path, os.O_RDWR | os.O_CREAT) for path in files]
        self._order = Bringing(
            identity=str(identities["alpha"]),
            peer=Stranger(name=NodeName("beta"), certificate=certificates["beta"]),
            host=LOCALHOST, offer=Offer(port=self._listener.getsockname()[1], secret=SECRET),
            compression=Compression.NONE, rate=0, path="disk", disk=self.opened[0],
            status=self.opened[1], layout=Layout(),
            confirmation=self.opened[2] if until_confirmed else None,
        )  # fmt: skip
        self.thread = threading.Thread(target=self._bring)
        self.thread.start()

    def _bring(self) -> None:
        Bringer(self._order).run()

    def line(self) -> Line:
        self._listener.settimeout(LONG_S)
        connection, _ = self._listener.accept()
        line = Line(self._context.wrap_socket(connection, server_side=True))
        line.wait_for(LONG_S)
        return line

    def confirm(self) -> None:
        confirm(self.opened[2])

    def arrived(self) -> None:
        """Return when it says that all is there."""
        until = time.monotonic() + LONG_S
        while not ((told := read_status(self._status)) and told.fetched.is_there):
            assert time.monotonic() < until, "it does not say so"
            time.sleep(0.01)  # noqa: TID251 -- it is another thread's file

    def told(self) -> Told:
        self.thread.join(LONG_S)
        told = read_status(self._status)
        assert told is not None
        return told

    def close(self) -> None:
        self._listener.close()
        for descriptor in self.opened:
            os.close(descriptor)


@pytest.fixture
def met(tmp_path: Path) -> Iterator[Met]:
    met = Met(tmp_path)
    yield met
    met.close()


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Met]:
    """Return one who says that he heard of the end when that is confirmed."""
    met = Met(tmp_path, until_confirmed=True)
    yield met
    met.close()


def take_all(line: Line, secret: str = SECRET) -> None:
    line.say(Hello(secret=secret, have=0, sum=""))
    line.hear(Welcome)
    while (frame := line.receive()).kind is not Kind.END:
        line.read(frame.length)
    line.read(frame.length)


def test_it_has_ended_when_all_is_said_to_be_there(met: Met) -> None:
    line = met.line()
    take_all(line)
    line.say(Verdict())
    line.hear(Heard)
    line.close()
    assert met.told().fetched.has_ended


def test_it_is_said_to_be_heard_when_that_is_confirmed(held: Met) -> None:
    line = held.line()
    take_all(line)
    line.say(Verdict())
    held.arrived()
    line.see_silent()
    held.confirm()
    line.hear(Heard)
    line.close()
    assert held.told().fetched.has_ended


def test_it_is_not_said_any_more_on_a_line_that_is_gone(held: Met) -> None:
    line = held.line()
    take_all(line)
    line.say(Verdict())
    held.arrived()
    line.close()
    told = held.told()
    assert "The connection to beta" in told.problem
    assert told.fetched.is_there
    assert not told.is_final


def test_what_is_not_there_is_not_taken_for_sent(met: Met) -> None:
    line = met.line()
    take_all(line)
    line.say(Verdict(problem="The disk cannot be written."))
    line.close()
    told = met.told()
    assert told.problem == "beta: The disk cannot be written."
    assert told.is_final
    assert not told.fetched.has_ended


def test_one_that_has_heard_nothing_of_the_end_comes_again(met: Met) -> None:
    line = met.line()
    take_all(line)
    line.close()
    told = met.told()
    assert "The connection to beta" in told.problem
    assert not told.is_final
    assert not told.fetched.has_ended


def test_nothing_is_sent_to_one_that_expects_another_disk(met: Met) -> None:
    line = met.line()
    line.say(Hello(secret="another", have=0, sum=""))
    with pytest.raises((EOFError, OSError)):
        line.hear(Welcome)
    line.close()
    assert met.told().problem == "Who answers for beta expects another disk."
