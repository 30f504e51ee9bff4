"""How much a script expects to write is a number of bytes that it says, and nothing else."""

import os
from pathlib import Path
from threading import enumerate as threads

import pytest

from noded.copies.estimate import from_the_line, on_the_line, open_estimate, read_estimate
from noded.copies.frames import NO_SUM
from noded.operating_systems.estimate import Estimate

MOST = (1 << 60) - 1


def kept(file: Path, said: bytes) -> bytes:
    """Return what is kept of what a script says."""
    file.write_bytes(b"")
    estimate = Estimate(str(file))
    own = os.dup(int(estimate.environment["EXP_SIZE_FD"]))
    assert estimate.descriptors == (int(estimate.environment["EXP_SIZE_FD"]),)
    before = set(threads())
    estimate.listen()
    if said:
        assert os.write(own, said) == len(said), "nobody is ended by saying more"
    os.close(own)
    for each in set(threads()) - before:
        each.join()
    return file.read_bytes() if file.exists() else b""


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (b"4096\n", 4096), (b"4096", 4096), (b"4096\n17\n", 4096), (b"0\n", 0), (b"", 0),
        (b"\n", 0), (b"-1\n", 0), (b"1e9\n", 0), (b"4096 bytes\n", 0), ("٤\n".encode(), 0),
        (b"9" * 18 + b"\n", 10**18 - 1), (b"9" * 19 + b"\n", 0), (b"x" * 300_000, 0),
    ],
)  # fmt: skip
def test_what_is_no_number_of_bytes_says_nothing(
    tmp_path: Path, said: bytes, expected: int
) -> None:
    kept(file := tmp_path / "estimate", said)
    os.mkfifo(tmp_path / "stream")
    stream = os.open(tmp_path / "stream", os.O_PATH)
    descriptor = open_estimate(stream)
    assert descriptor is not None
    assert read_estimate(descriptor) == expected
    file.unlink()
    assert open_estimate(stream) is None, "as with a script that was begun before there were any"
    os.close(descriptor)
    os.close(stream)


def test_it_goes_where_a_sum_would_be_that_older_nodes_do_not_read() -> None:
    for expected in (0, 4096, MOST):
        assert from_the_line(on_the_line(expected)) == expected
        assert len(on_the_line(expected)) == len(NO_SUM)
    assert on_the_line(0) == NO_SUM, "older nodes send that"
    assert from_the_line(b"\xff" * 16) == from_the_line((MOST + 1).to_bytes(16)) == 0


def test_nothing_is_kept_of_what_has_been_forgotten_meanwhile(tmp_path: Path) -> None:
    assert kept(tmp_path / "estimate", b"17\n") == b"17\n"
    (tmp_path / "gone").mkdir()
    estimate = Estimate(str(tmp_path / "gone" / "estimate"))
    (tmp_path / "gone").rmdir()
    own = os.dup(estimate.descriptors[0])
    before = set(threads())
    estimate.listen()
    os.write(own, b"17\n")
    os.close(own)
    for each in set(threads()) - before:
        each.join()
    assert not (tmp_path / "gone").exists()
