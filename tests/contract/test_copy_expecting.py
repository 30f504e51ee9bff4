"""What one who expects a disk from another cluster makes of who comes, and comes again."""

import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.names import NodeName
from common.noderpc.copies import Stranger
from common.tls.context import CERTIFICATE, stranger_context
from noded.copies import chunks
from noded.copies.chunks import CHUNK
from noded.copies.confirmation import confirm
from noded.copies.expecting import Expecter
from noded.copies.frames import NO_SUM, Frame, Heard, Hello, Kind, Line, Verdict, Welcome
from noded.copies.orders import Expecting
from noded.copies.status import Told, read_status
from noded.images.contents import Layout
from tests.support.https_node import LOCALHOST, TestCluster

SECRET = "5ec2e7"
LONG_S = 30.0
DATA = [bytes([value]) * CHUNK for value in (1, 2)]
SUMS = [chunks.sum_of(chunk) for chunk in DATA]


class Met:
    """Beta, which expects a disk of two chunks from alpha, which a test plays."""

    def __init__(self, root: Path, wait_s: float, *, until_confirmed: bool = False) -> None:
        identities = {
            name: TestCluster(root / f"of-{name}").identity(name) for name in ("alpha", "beta")
        }
        certificates = {name: (path / CERTIFICATE).read_text() for name, path in identities.items()}
        self._context = stranger_context(identities["alpha"], certificates["beta"], serves=False)
        listener = socket.create_server((LOCALHOST, 0))
        self._port = listener.getsockname()[1]
        self.disk, self._status = root / "disk", root / "status.json"
        self.disk.write_bytes(bytes(2 * CHUNK))
        files = (self.disk, root / "sums", self._status, root / "confirmation")
        self._opened = [os.open(path, os.O_RDWR | os.O_CREAT) for path in files]
        order = Expecting(
            identity=str(identities["beta"]), wait_s=wait_s, secret=SECRET, path="disk",
            peer=Stranger(name=NodeName("alpha"), certificate=certificates["alpha"]),
            disk=self._opened[0], sums=self._opened[1], status=self._opened[2],
            listener=listener.detach(), layout=Layout(),
            confirmation=self._opened[3] if until_confirmed else None,
        )  # fmt: skip
        expecter = Expecter(order)
        self._thread = threading.Thread(target=expecter.run)
        self._thread.start()
        self._lines: list[Line] = []

    def visit(self) -> tuple[Line, Hello]:
        connection = socket.create_connection((LOCALHOST, self._port), timeout=LONG_S)
        line = Line(self._context.wrap_socket(connection))
        self._lines.append(line)
        return line, line.hear(Hello)

    def confirm(self) -> None:
        confirm(self._opened[3])

    def arrived(self) -> None:
        """Return when it says that all is there."""
        until = time.monotonic() + LONG_S
        while not ((told := self.told()) and told.fetched.is_there):
            assert time.monotonic() < until, "it does not say so"
            time.sleep(0.01)  # noqa: TID251 -- it is another thread's file

    def told(self) -> Told | None:
        return read_status(self._status)

    def ended(self) -> Told:
        self._thread.join(LONG_S)
        told = self.told()
        assert told is not None
        return told

    def close(self) -> None:
        for line in self._lines:
            line.close()
        for descriptor in self._opened:
            os.close(descriptor)


@pytest.fixture
def met(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Met]:
    met = Met(tmp_path, getattr(request, "param", LONG_S))
    yield met
    met.close()


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Met]:
    """Return one who says that all is there when that is confirmed."""
    met = Met(tmp_path, LONG_S, until_confirmed=True)
    yield met
    met.close()


def bring(line: Line, begin: int = 0) -> Verdict:
    """Say all that is on the disk from a chunk on; return what is made of it."""
    send(line, begin)
    return line.hear(Verdict)


def send(line: Line, begin: int = 0) -> None:
    line.say(Welcome(size=2 * CHUNK, begin=begin))
    for index in range(begin, 2):
        line.send(Frame(Kind.PLAIN, index, CHUNK, SUMS[index]), DATA[index])
    whole = chunks.sum_of_all(SUMS)
    line.send(Frame(Kind.END, 2, len(whole), NO_SUM), whole)


def test_it_has_ended_when_who_brought_it_knows_that(met: Met) -> None:
    line, hello = met.visit()
    assert (hello.secret, hello.have) == (SECRET, 0)
    assert not bring(line).problem
    told = met.told()
    assert told is not None
    assert not told.fetched.has_ended
    line.say(Heard())
    line.close()
    assert met.ended().fetched.has_ended
    assert met.disk.read_bytes() == b"".join(DATA)


def test_who_did_not_hear_that_all_is_there_is_told_again(met: Met) -> None:
    first, _ = met.visit()
    bring(first)
    first.close()
    second, hello = met.visit()
    assert (hello.have, hello.sum) == (2, chunks.sum_of_all(SUMS).hex())
    assert not bring(second, begin=2).problem
    second.say(Heard())
    second.close()
    assert met.ended().fetched.has_ended


@pytest.mark.parametrize("met", [1.0], indirect=True)
def test_one_that_began_anew_and_broke_off_is_not_taken_for_complete(met: Met) -> None:
    first, _ = met.visit()
    bring(first)
    first.close()
    second, _ = met.visit()
    second.say(Welcome(size=2 * CHUNK, begin=0))
    second.send(Frame(Kind.PLAIN, 0, CHUNK, SUMS[1]), DATA[1])
    second.close()
    told = met.ended()
    assert not told.fetched.has_ended
    assert "Nobody has come from alpha" in told.problem


def test_what_is_to_be_confirmed_is_told_when_it_is(held: Met) -> None:
    line, _ = held.visit()
    send(line)
    held.arrived()
    held.confirm()
    assert not line.hear(Verdict).problem
    line.say(Heard())
    assert held.ended().fetched.has_ended


def test_who_did_not_hear_what_was_confirmed_may_have_it_still(
    held: Met, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noded.copies.expecting.CONFIRMED_S", 0.1)
    line, _ = held.visit()
    send(line)
    held.arrived()
    line.close()
    held.confirm()
    told = held.ended()
    assert not told.fetched.has_ended
    assert "Nobody has come from alpha" in told.problem
    assert "to hear that all is there" in told.problem


def test_what_nobody_confirms_is_nobodys(held: Met, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has brought it goes on with his."""
    monkeypatch.setattr("noded.copies.confirmation.SYNC_S", 0.1)
    line, _ = held.visit()
    assert "has not recorded that" in bring(line).problem
    told = held.ended()
    assert told.is_final
    assert not told.fetched.has_ended


def test_a_chunk_that_is_damaged_is_not_written(met: Met) -> None:
    line, _ = met.visit()
    line.say(Welcome(size=2 * CHUNK, begin=0))
    with pytest.raises((EOFError, OSError)):
        for index in range(2):
            line.send(Frame(Kind.PLAIN, index, CHUNK, SUMS[0]), DATA[1])
        line.send(Frame(Kind.END, 2, len(SUMS[0]), NO_SUM), SUMS[0])
        line.hear(Verdict)
    again, hello = met.visit()
    assert hello.have == 0
    bring(again)
    again.say(Heard())
    assert met.ended().fetched.has_ended
    assert met.disk.read_bytes() == b"".join(DATA)


def test_who_brings_more_than_fits_hears_that_it_does_not(met: Met) -> None:
    line, _ = met.visit()
    line.say(Welcome(size=3 * CHUNK, begin=0))
    for index, data in enumerate([*DATA, DATA[0]]):
        line.send(Frame(Kind.PLAIN, index, CHUNK, chunks.sum_of(data)), data)
    line.send(Frame(Kind.END, 3, 0, NO_SUM), b"")
    assert "data beyond that" in line.hear(Verdict).problem
    assert "data beyond that" in met.ended().problem
    assert met.disk.read_bytes() == b"".join(DATA)  # and the disk is no larger


def test_a_problem_in_the_middle_is_no_connection_that_broke(met: Met) -> None:
    """Who cannot read his disk says so whatever he has sent, and is not asked to come again."""
    line, _ = met.visit()
    line.say(Welcome(size=2 * CHUNK, begin=0))
    line.send(Frame(Kind.PLAIN, 0, CHUNK, SUMS[0]), DATA[0])
    problem = b"The disk cannot be read: Input/output error."
    line.send(Frame(Kind.PROBLEM, 0, len(problem), NO_SUM), problem)
    assert "Input/output error" in line.hear(Verdict).problem
    told = met.ended()
    assert told.is_final
    assert told.problem == f"alpha: {problem.decode()}"
