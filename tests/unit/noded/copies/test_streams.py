"""What a script writes is passed on in whole chunks; meanwhile who waits hears of it."""

import os
import socket
from itertools import islice
from pathlib import Path
from threading import Thread

import pytest

from common.errors import NodeFailure
from common.noderpc.copies import Compression
from noded.copies import streams
from noded.copies.chunks import CHUNK, sum_of
from noded.copies.ending import FILE, Ending, KeptEnding
from noded.copies.estimate import from_the_line
from noded.copies.frames import Hello, Kind, Verdict, Welcome
from noded.copies.serving import SILENT_S
from noded.copies.status import Status, read_status
from noded.copies.streams import StreamServing, StreamTarget, chunks_of
from tests.support.lines import line_on


class SlowScript:
    """Writes a byte whenever somebody looks at the clock, which is long before a chunk is full."""

    def __init__(self) -> None:
        self.pipe, self._end = os.pipe()
        self.at = 0

    def now(self) -> float:
        os.write(self._end, b"x")
        self.at += 1
        return self.at * SILENT_S / 4

    def end(self) -> None:
        os.close(self._end)
        os.close(self.pipe)


def ended(directory: Path, status: int = 0) -> Ending:
    """Return how a script has ended whose stream would be in a directory."""
    (directory / FILE).touch()
    KeptEnding(str(directory / FILE)).tell(status)
    (directory / "stream").touch()
    stream = os.open(directory / "stream", os.O_RDONLY)
    try:
        return Ending(stream)
    finally:
        os.close(stream)


@pytest.mark.parametrize("expected", [0, 2 * CHUNK], ids=["not said", "said"])
def test_what_a_script_expects_to_write_is_told_once_though_it_never_pauses(
    tmp_path: Path, expected: int
) -> None:
    (tmp_path / "estimate").write_text(f"{expected}\n")
    estimate = os.open(tmp_path / "estimate", os.O_RDONLY)
    pipe = os.open(tmp_path, os.O_TMPFILE | os.O_RDWR)  # what is written whole needs no waiting
    os.pwrite(pipe, b"x" * 2 * CHUNK, 0)
    here, beyond = socket.socketpair()
    with here, beyond:
        ours, theirs = line_on(here), line_on(beyond)
        serving = StreamServing(
            pipe,
            estimate,
            ended(tmp_path),
            compression=Compression.FAST,
            rate=0,
            advance=lambda *_: None,
        )
        hello = Hello(secret="secret", have=0, sum="")
        theirs.say(Verdict())
        assert serving.serve(ours, hello) == Verdict()
        assert theirs.hear(Welcome).size is None
        frames = []
        while (frame := theirs.receive()).kind is not Kind.END:
            theirs.read(frame.length)
            frames.append(frame)
    told = [from_the_line(frame.sum) for frame in frames if frame.kind is Kind.ZEROS]
    assert told == ([expected] if expected else [])
    assert [frame.number for frame in frames] == ([0, 0, 1] if expected else [0, 1])
    os.close(pipe)
    os.close(estimate)


def test_what_was_expected_is_told_with_all_that_has_come_since(tmp_path: Path) -> None:
    status = Status(os.open(tmp_path / "status", os.O_RDWR | os.O_CREAT))
    status.expect(7)
    status.advance(1, 1)
    status.fail("it broke", is_final=False)
    assert (told := read_status(tmp_path / "status"))
    assert (told.fetched.done, told.fetched.expected) == (1, 7)


def test_a_script_that_writes_slowly_and_steadily_is_heard_of_all_the_time() -> None:
    script = SlowScript()
    passed = chunks_of(script.pipe, now=script.now)
    for _ in range(5):
        before = script.at
        assert list(islice(passed, 1)) == [b""]
        assert 4 <= script.at - before <= 7  # it has written all the while
    assert script.at < CHUNK
    script.end()


def test_a_script_that_reads_nothing_any_more_is_not_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "READ_S", 0)
    reads, writes = os.pipe()
    target = StreamTarget(writes, "disk 0", None)
    chunk = bytes(CHUNK)  # more than the pipe takes
    with pytest.raises(NodeFailure, match="has read nothing more of disk 0 for 0 minutes; see"):
        target.write(0, chunk, sum_of(chunk), is_packed=False)
    target.close()
    os.close(reads)


def test_a_script_that_reads_slowly_is_given_all_of_it() -> None:
    reads, writes = os.pipe()
    target = StreamTarget(writes, "disk 0", None)
    chunk = os.urandom(CHUNK)
    come = bytearray()

    def read() -> None:
        while data := os.read(reads, 65_521):  # which is no part of a chunk
            come.extend(data)

    script = Thread(target=read)
    script.start()
    target.write(0, chunk, sum_of(chunk), is_packed=False)
    target.close()
    script.join()
    os.close(reads)
    assert come == chunk


def test_nothing_is_said_to_be_whole_of_a_script_that_has_failed(tmp_path: Path) -> None:
    pipe, end = os.pipe()
    os.close(end)
    here, beyond = socket.socketpair()
    with here, beyond:
        ours, theirs = line_on(here), line_on(beyond)
        serving = StreamServing(
            pipe,
            None,
            ended(tmp_path, status=3),
            compression=Compression.NONE,
            rate=0,
            advance=lambda *_: None,
        )
        theirs.say(Verdict(problem="so I hear"))
        serving.serve(ours, Hello(secret="secret", have=0, sum=""))
        theirs.hear(Welcome)
        frame = theirs.receive()
        said = theirs.read(frame.length)
        assert (frame.kind, said) == (
            Kind.PROBLEM,
            b"The script that wrote this ended with status 3.",
        )
        here.shutdown(socket.SHUT_WR)
        with pytest.raises(EOFError):
            theirs.receive()
    os.close(pipe)
