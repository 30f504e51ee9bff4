"""A disk as a row of chunks: which are all zeros, how they are told apart, and packed."""

import zlib
from collections.abc import Iterable
from hashlib import blake2b

from common.noderpc.copies import Compression

CHUNK = 1 << 20  # bytes
SUM_BYTES = 16
WORTHWHILE = 15 / 16  # of its size, for a packed chunk to be sent instead
SAMPLE = 16 << 10  # bytes of a chunk that tell whether it is worth a try

_ZEROS = bytes(CHUNK)
# Level 1 of zlib packs what guests write nearly as small as 6 does, in a third of the time.
_LEVELS = {Compression.FAST: 1, Compression.GZIP: 6, Compression.SLOW: 9}


def chunks_in(size: int) -> int:
    """Return how many chunks ``size`` bytes are; the last may be shorter."""
    return -(-size // CHUNK)


def length_of(index: int, size: int) -> int:
    """Return how long a chunk is of a disk of ``size`` bytes."""
    return max(0, min(CHUNK, size - index * CHUNK))


def is_zero(chunk: bytes) -> bool:
    return chunk == (_ZEROS if len(chunk) == CHUNK else bytes(len(chunk)))


def sum_of(chunk: bytes) -> bytes:
    return blake2b(chunk, digest_size=SUM_BYTES).digest()


def sum_of_all(sums: Iterable[bytes]) -> bytes:
    """Return the sum of a whole disk, or of its beginning, from those of its chunks in order."""
    every = blake2b()
    for each in sums:
        every.update(each)
    return every.digest()


ZERO_SUM = sum_of(_ZEROS)


def pack(chunk: bytes, compression: Compression) -> bytes | None:
    """Make a chunk smaller; None if that is not wanted or not worth it."""
    if compression is Compression.NONE:
        return None
    sample = chunk[len(chunk) // 2 :][:SAMPLE]
    if len(zlib.compress(sample, _LEVELS[Compression.FAST])) >= len(sample) * WORTHWHILE:
        return None  # it is packed, or encrypted, already
    packed = zlib.compress(chunk, _LEVELS[compression])
    return packed if len(packed) < len(chunk) * WORTHWHILE else None


def unpack(packed: bytes) -> bytes:
    """Return the chunk; never more than there can be in one, whatever the bytes say.

    Raises:
        ValueError: this is no packed chunk.
    """
    inflater = zlib.decompressobj()
    try:
        chunk = inflater.decompress(packed, CHUNK + 1)
    except zlib.error as error:
        raise ValueError(f"a chunk cannot be unpacked: {error}") from error
    if not inflater.eof or inflater.unconsumed_tail or inflater.unused_data:
        raise ValueError("a packed chunk has another length than it says")
    return chunk
