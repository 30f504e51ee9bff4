"""Reading images in QEMU's format, as much of it as published images use.

What makes an image depend on another file is refused: whoever makes images could have a node
read any file of its own by that.

Source: docs/interop/qcow2.txt of QEMU 7.2.
"""

import os
import struct
import sys
import zlib
from array import array
from collections.abc import Iterator, Sequence
from functools import lru_cache

MAGIC = b"QFI\xfb"
HEADER = struct.Struct(">4sIQIIQIIQQIIQ")  # up to the snapshots' offset, of version 2
_MORE = struct.Struct(">QQQII")  # what version 3 adds: three sets of features, two numbers
_OFFSET = 0x00FF_FFFF_FFFF_FE00
_COMPRESSED, _ZERO = 1 << 62, 1
_DIRTY, _CORRUPT, _EXTERNAL, _COMPRESSION, _EXTENDED = (1 << bit for bit in range(5))
_NAMES = {_CORRUPT: "it is corrupt", _EXTERNAL: "its data is in another file"}
_SECTOR = 512
_NO_PLACE = 1 << 63  # from there on, no file has any
_BIGGEST_TABLE = 32 << 20  # bytes of the first table; enough for 2 PiB


_KEPT = struct.Struct(">QIHHIIQII")  # of a snapshot: its table, its names, more than is read here
_MOST_KEPT = 65536  # snapshots in an image


class BadImage(Exception):
    """Says what is wrong with an image."""


class Qcow2:
    """An image that can be read from a descriptor."""

    def __init__(self, descriptor: int, snapshot: str = "") -> None:
        """Read what is at its beginning.

        Args:
            descriptor: of the file.
            snapshot: the name of what it has kept inside; empty: what is on the disk now.

        Raises:
            BadImage: it cannot be used, and why.
        """
        self._file = descriptor
        told = os.pread(descriptor, HEADER.size, 0)
        if len(told) < HEADER.size:
            raise BadImage("it ends within its header")
        (magic, version, backing, _, bits, self.size, crypt, entries, table, _, _, kept, at) = (
            HEADER.unpack(told)
        )
        if magic != MAGIC or version not in (2, 3):
            raise BadImage("it is in no version of QEMU's format that is known here")
        if backing:
            raise BadImage("it is based on another image")
        if crypt:
            raise BadImage("it is encrypted")
        if not 9 <= bits <= 21 or entries * 8 > _BIGGEST_TABLE:
            raise BadImage("its header makes no sense")
        if version > 2:
            self._check_features()
        if kept > _MOST_KEPT:
            raise BadImage("it keeps more snapshots than there can be")
        self._kept = kept, at
        if snapshot:
            table, entries, self.size = self._snapshot(snapshot)
        self.cluster = 1 << bits
        self._bits = bits
        self._per_table = self.cluster // 8
        self._first = self._numbers(table, entries)
        if len(self._first) * self._per_table * self.cluster < self.size:
            raise BadImage("its table is too short for its size")
        self._second = lru_cache(16)(lambda at: self._numbers(at, self._per_table))

    def snapshots(self) -> Iterator[tuple[str, tuple[int, int, int]]]:
        """Yield what is kept inside: its name, and table, entries of that, and size of the disk."""
        count, at = self._kept
        for _ in range(count):
            table, entries, id_size, name_size, _, _, _, _, extra = _KEPT.unpack(
                self._bytes(at, _KEPT.size)
            )
            if entries * 8 > _BIGGEST_TABLE or extra > _SECTOR:
                raise BadImage("what it says of a snapshot makes no sense")
            begin = at + _KEPT.size
            size = self.size
            if extra >= 16:  # that of the guest's memory comes first
                (size,) = struct.unpack(">Q", self._bytes(begin + 8, 8))
            name = self._bytes(begin + extra + id_size, name_size)
            yield name.decode(errors="replace"), (table, entries, size)
            at = -(-(begin + extra + id_size + name_size) // 8) * 8

    def _snapshot(self, name: str) -> tuple[int, int, int]:
        for each, place in self.snapshots():
            if each == name:
                return place
        raise BadImage(f"it has kept no {name}")

    def entry(self, offset: int) -> int:
        """Return what the tables say of the cluster in which ``offset`` of the disk is."""
        number = offset >> self._bits
        at = self._first[number // self._per_table] & _OFFSET
        return self._second(at)[number % self._per_table] if at else 0

    def place(self, entry: int) -> int | None:
        """Return where in the file a cluster is; None where it is zeros.

        Raises:
            BadImage: it is packed.
        """
        if entry & _COMPRESSED:
            raise BadImage("a part of it is packed")
        at = entry & _OFFSET
        return None if not at or entry & _ZERO else at

    def clusters(self) -> Iterator[tuple[int, bytes]]:
        """Yield what is not zeros: offsets, and what is there; the last one may be shorter."""
        for index, entry in enumerate(self._first):
            start = index * self._per_table * self.cluster
            if start >= self.size:
                return
            at = entry & _OFFSET
            for number, each in enumerate(self._second(at) if at else ()):
                offset = start + number * self.cluster
                if each and offset < self.size and (data := self._read(each)) is not None:
                    yield offset, data[: self.size - offset]

    def _check_features(self) -> None:
        told = os.pread(self._file, _MORE.size, HEADER.size)
        if len(told) < _MORE.size:
            raise BadImage("it ends within its header")
        needed, *_ = _MORE.unpack(told)
        for bit, name in _NAMES.items():
            if needed & bit:
                raise BadImage(name)
        if needed & _COMPRESSION:
            raise BadImage("it is packed otherwise than by zlib; qemu-img convert makes it usual")
        if needed & ~_DIRTY:  # a dirty one has wrong counts of references, which nobody reads here
            raise BadImage("it needs what is not known here")

    def _read(self, entry: int) -> bytes | None:
        """Return the data of a cluster; None where it is zeros."""
        if entry & _COMPRESSED:
            return self._unpack(entry & (_COMPRESSED - 1))
        at = entry & _OFFSET
        if not at or entry & _ZERO:
            return None
        return self._bytes(at, self.cluster)

    def _unpack(self, entry: int) -> bytes:
        bits = 62 - (self._bits - 8)  # of the offset; above it is how many sectors follow
        at, sectors = entry & ((1 << bits) - 1), (entry >> bits) + 1
        packed = os.pread(self._file, sectors * _SECTOR - at % _SECTOR, at)
        try:
            data = zlib.decompressobj(-15).decompress(packed, self.cluster)
        except zlib.error as error:
            raise BadImage(f"a part of it cannot be unpacked ({error})") from error
        if len(data) != self.cluster:
            raise BadImage("a part of it is shorter than it says")
        return data

    def _numbers(self, at: int, count: int) -> Sequence[int]:
        """Read a table, packed: whoever makes an image says how long it is."""
        numbers = array("Q", self._bytes(at, count * 8))
        if sys.byteorder == "little":
            numbers.byteswap()
        return numbers

    def _bytes(self, at: int, length: int) -> bytes:
        if at >= _NO_PLACE:
            raise BadImage("its header makes no sense")
        data = os.pread(self._file, length, at)
        if len(data) != length:
            raise BadImage("it ends before its end")
        return data
