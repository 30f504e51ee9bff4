import os
import zlib

import pytest

from common.noderpc.copies import Compression
from noded.copies import chunks

PACKING = [Compression.FAST, Compression.GZIP, Compression.SLOW]


@pytest.mark.parametrize("compression", PACKING)
@pytest.mark.parametrize("length", [1, 4711, chunks.CHUNK])
def test_what_was_packed_is_unpacked(compression: Compression, length: int) -> None:
    chunk = (b"all work and no play " * (length // 20 + 1))[:length]
    packed = chunks.pack(chunk, compression)
    assert packed is None or (len(packed) < length and chunks.unpack(packed) == chunk)
    assert length < chunks.CHUNK or packed is not None


@pytest.mark.parametrize("compression", list(Compression))
def test_what_does_not_become_smaller_is_sent_as_it_is(compression: Compression) -> None:
    assert chunks.pack(os.urandom(chunks.CHUNK), compression) is None


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"no zlib",
        zlib.compress(b"whole")[:-1],
        zlib.compress(b"whole") + b"more",
        zlib.compress(bytes(8 * chunks.CHUNK), level=1),  # far more than there can be in a chunk
    ],
)
def test_what_is_no_packed_chunk_is_refused_whatever_it_would_become(packed: bytes) -> None:
    with pytest.raises(ValueError, match="chunk"):
        unpacked = chunks.unpack(packed)
        assert len(unpacked) <= chunks.CHUNK, "a packed chunk is bounded"


def test_a_last_chunk_is_as_long_as_what_is_left() -> None:
    size = 2 * chunks.CHUNK + 5
    assert chunks.chunks_in(size) == 3
    assert [chunks.length_of(index, size) for index in range(4)] == [
        chunks.CHUNK, chunks.CHUNK, 5, 0,
    ]  # fmt: skip


def test_order_counts_in_the_sum_of_a_whole_disk() -> None:
    one, other = chunks.sum_of(b"one"), chunks.sum_of(b"other")
    assert chunks.sum_of_all([one, other]) != chunks.sum_of_all([other, one])
