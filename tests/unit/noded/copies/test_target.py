"""The disk that a copy fills: what is written on it, and what is not."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.errors import NodeFailure
from noded.copies import chunks
from noded.copies.chunks import CHUNK
from noded.copies.frames import Garbled
from noded.copies.target import MOST_BEYOND, Sums, Target
from noded.images.contents import Bytes

DATA = b"data" * (CHUNK // 4)


class Disk:
    """A file of so many chunks."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT)

    def target(self, source_size: int) -> Target:
        return Target(Bytes(self.descriptor), str(self.path), source_size)

    def resize(self, size: int, *, filled: bool = False) -> None:
        os.ftruncate(self.descriptor, size)
        if filled:
            os.pwrite(self.descriptor, b"x" * size, 0)

    @property
    def blocks(self) -> int:
        return self.path.stat().st_blocks


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    made = Disk(tmp_path / "disk")
    yield made
    os.close(made.descriptor)


def test_a_damaged_chunk_is_not_written(disk: Disk) -> None:
    disk.resize(CHUNK)
    with pytest.raises(Garbled, match="chunk 0 has arrived damaged"):
        disk.target(CHUNK).write(0, DATA[:-1] + b"?", chunks.sum_of(DATA), is_packed=False)
    assert disk.path.read_bytes() == bytes(CHUNK)


def test_a_size_far_beyond_the_disks_is_refused_even_if_all_of_it_were_zeros(disk: Disk) -> None:
    disk.resize(CHUNK)
    assert disk.target(CHUNK + MOST_BEYOND).write_zeros(1, 2) == [chunks.ZERO_SUM] * 2
    with pytest.raises(NodeFailure, match="is said to have 1125899906842624; make it larger"):
        disk.target(1 << 50)
    assert disk.path.stat().st_size == CHUNK


def test_zeros_are_written_only_over_something_else(disk: Disk) -> None:
    disk.resize(8 * CHUNK)
    target = disk.target(8 * CHUNK)
    assert target.write_zeros(0, 8) == [chunks.ZERO_SUM] * 8
    assert disk.blocks == 0
    disk.resize(8 * CHUNK, filled=True)
    target.write_zeros(0, 8)
    assert disk.path.read_bytes() == bytes(8 * CHUNK)


def test_what_a_larger_disk_has_beyond_the_copy_becomes_zeros(disk: Disk) -> None:
    disk.resize(3 * CHUNK, filled=True)
    target = disk.target(CHUNK)
    target.write(0, DATA, chunks.sum_of(DATA), is_packed=False)
    target.finish()
    assert disk.path.read_bytes() == DATA + bytes(2 * CHUNK)


def test_a_smaller_disk_takes_zeros_beyond_its_end_and_no_data(disk: Disk) -> None:
    disk.resize(CHUNK // 2)
    target = disk.target(2 * CHUNK)
    half = DATA[: CHUNK // 2] + bytes(CHUNK // 2)
    target.write(0, half, chunks.sum_of(half), is_packed=False)
    target.write_zeros(1, 1)
    with pytest.raises(NodeFailure, match="there is data beyond that"):
        target.write(0, DATA, chunks.sum_of(DATA), is_packed=False)
    assert disk.path.stat().st_size == CHUNK // 2


def test_a_full_disk_is_told(disk: Disk) -> None:
    full = os.open("/dev/full", os.O_RDWR)
    try:
        target = Target(Bytes(full), "/dev/full", CHUNK)
        target._size = CHUNK  # a device that takes nothing has no size
        with pytest.raises(NodeFailure, match="cannot be written: No space left on device"):
            target.write(0, DATA, chunks.sum_of(DATA), is_packed=False)
    finally:
        os.close(full)


def test_half_a_sum_that_a_killed_process_left_does_not_count(disk: Disk) -> None:
    sums = Sums(disk.descriptor)
    sums.add([chunks.sum_of(b"one"), chunks.sum_of(b"two")])
    os.pwrite(disk.descriptor, b"half", 2 * chunks.SUM_BYTES)
    again = Sums(disk.descriptor)
    assert again.all == sums.all
    again.cut(1)
    assert Sums(disk.descriptor).all == [chunks.sum_of(b"one")]
