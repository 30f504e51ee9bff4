"""What is on a disk, byte for byte, whatever the file is that it is kept in."""

import os
from typing import Protocol

from common.messages import Order
from common.model.backing import Backing, Qcow2Backing
from noded.copies import device
from noded.images.inside import Inside

AS_QCOW2 = "file:qcow2"  # what scripts are told that such a file is


class Layout(Order):
    """What a descriptor is of.

    Attributes:
        is_qcow2: a file of that format; else it is the disk, byte for byte.
        snapshot: what of that file is meant; empty: what is on the disk now.
    """

    is_qcow2: bool = False
    snapshot: str = ""


class Contents(Protocol):
    """The bytes of a disk; several threads may use it at a time. ``size`` is in bytes."""

    @property
    def size(self) -> int: ...

    def read(self, length: int, offset: int) -> bytes:
        """Return ``length`` bytes.

        Raises:
            OSError: an I/O error, or there are less.
        """

    def next_data(self, offset: int, end: int) -> int:
        """Return where the next data may be at or after ``offset``; ``end`` if there is none."""

    def write(self, data: bytes, offset: int) -> None:
        """Write all of ``data``."""

    def write_zeros(self, length: int, offset: int) -> None:
        """Have zeros there; nothing is written where they are."""

    def erase(self, length: int, offset: int) -> None:
        """Have zeros there, whatever is there."""

    def sync(self) -> None:
        """Return when all that was written is durable."""


class Bytes:
    """A descriptor that is the disk."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.size = device.size_of(descriptor)

    def read(self, length: int, offset: int) -> bytes:
        return device.read_exactly(self._descriptor, length, offset)

    def next_data(self, offset: int, end: int) -> int:
        return device.next_data(self._descriptor, offset, end)

    def write(self, data: bytes, offset: int) -> None:
        device.write_all(self._descriptor, data, offset)

    def write_zeros(self, length: int, offset: int) -> None:
        device.write_zeros(self._descriptor, length, offset)

    def erase(self, length: int, offset: int) -> None:
        device.zero_range(self._descriptor, length, offset)

    def sync(self) -> None:
        os.fsync(self._descriptor)


def layout_of(backing: Backing) -> Layout:
    """Return what who opens a disk gets a descriptor of."""
    if isinstance(backing, Qcow2Backing):
        return Layout(is_qcow2=True, snapshot=backing.snapshot)
    return Layout()


def contents_of(descriptor: int, layout: Layout) -> Contents:
    """Return what is on an open disk.

    Raises:
        OSError: it cannot be read, or is not what it should be.
    """
    return Inside(descriptor, layout.snapshot) if layout.is_qcow2 else Bytes(descriptor)
