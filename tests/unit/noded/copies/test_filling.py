"""What is sent again of a disk whose copy has broken off: what is not there."""

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import pytest

from common.errors import GntError, InvalidRequest, NodeFailure
from common.noderpc.copies import Compression
from noded.copies import filling
from noded.copies.chunks import CHUNK, sum_of
from noded.copies.ending import FILE, KeptEnding
from noded.copies.filling import Filling
from noded.copies.frames import NO_SUM, Frame, Hello, Kind, Verdict, Welcome
from noded.copies.serving import Serving
from noded.copies.source import Source
from noded.copies.status import Status, Told, read_status
from noded.copies.target import Sums
from noded.images.contents import Bytes, Layout
from tests.support.lines import line_on

CHUNKS = [bytes([number + 1]) * CHUNK for number in range(3)]


@dataclass(frozen=True)
class Wanted:
    path: str
    disk: int
    sums: int
    may_grow: bool
    layout: Layout = Layout()


def opened(path: Path, text: bytes = b"") -> int:
    path.write_bytes(text)
    return os.open(path, os.O_RDWR)


@pytest.mark.parametrize(
    ("size", "failure"),
    [(1 << 60, NodeFailure), (-1, InvalidRequest)],  # years of zeros, and what is no size
)
def test_who_names_a_size_that_cannot_be_gets_nothing_written_and_no_word_spread_of_it(
    tmp_path: Path, size: int, failure: type[GntError]
) -> None:
    there = tmp_path / "there"
    wanted = Wanted(
        path=str(there), disk=opened(there, CHUNKS[0]), sums=opened(tmp_path / "sums"),
        may_grow=False,
    )  # fmt: skip
    here, beyond = socket.socketpair()
    with here, beyond:
        ours, theirs = line_on(here), line_on(beyond)
        theirs.say(Welcome(size=size, begin=0))
        theirs.send(Frame(Kind.ZEROS, 0, 3, NO_SUM))
        beyond.shutdown(socket.SHUT_WR)
        with pytest.raises(failure):
            Filling(wanted, Status(opened(tmp_path / "status")), "alpha").fill(ours, "secret")
    assert there.read_bytes() == CHUNKS[0]
    assert (tmp_path / "sums").read_bytes() == b""
    assert read_status(tmp_path / "status") == Told()


@pytest.mark.parametrize("may_grow", [False, True], ids=["a disk", "a dump"])
def test_a_whole_disk_goes_on_where_it_broke_off_whatever_it_is_kept_in(
    tmp_path: Path, may_grow: bool
) -> None:
    there = tmp_path / "there"
    wanted = Wanted(
        path=str(there), disk=opened(there, CHUNKS[0] + CHUNKS[1] + bytes(CHUNK)),
        sums=opened(tmp_path / "sums"), may_grow=may_grow,
    )  # fmt: skip
    Sums(wanted.sums).add([sum_of(CHUNKS[0]), sum_of(CHUNKS[1])])
    source = Source(Bytes(opened(tmp_path / "disk", b"".join(CHUNKS))), Compression.NONE)
    begun_at: list[int] = []
    serving = Serving(
        source, path="disk", rate=0,
        begin=lambda _size, done: begun_at.append(done), advance=lambda _done, _sent: None,
    )  # fmt: skip
    here, beyond = socket.socketpair()
    with here, beyond:
        ours, theirs = line_on(here), line_on(beyond)
        other = Thread(target=lambda: serving.serve(theirs, theirs.hear(Hello)))
        other.start()
        Filling(wanted, Status(opened(tmp_path / "status")), "alpha").fill(ours, "secret")
        ours.say(Verdict())
        other.join()
    assert begun_at == [2 * CHUNK]
    told = read_status(tmp_path / "status")
    assert told
    assert told.fetched.done_before == 2 * CHUNK
    assert there.read_bytes() == b"".join(CHUNKS)


def test_a_script_that_has_all_and_does_not_end_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling, "SYNC_S", 0)
    os.mkfifo(tmp_path / "stream")
    (tmp_path / FILE).touch()
    kept = KeptEnding(str(tmp_path / FILE))
    script = os.open(tmp_path / "stream", os.O_RDONLY | os.O_NONBLOCK)
    wanted = Wanted(
        path="disk 0", disk=os.open(tmp_path / "stream", os.O_PATH),
        sums=opened(tmp_path / "sums"), may_grow=False,
    )  # fmt: skip
    filled = Filling(wanted, Status(opened(tmp_path / "status")), "alpha")
    with pytest.raises(NodeFailure, match="has not ended 0 minutes after it had all of disk 0"):
        filled.see_script_end()
    kept.tell(0)
    filled.see_script_end()
    os.close(script)
