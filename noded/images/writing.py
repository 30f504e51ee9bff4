"""Putting an image onto a disk."""

import os
from collections.abc import Callable, Iterator

from noded.copies.chunks import is_zero
from noded.copies.device import next_data, size_of
from noded.images.contents import Contents
from noded.images.qcow2 import MAGIC, BadImage, Qcow2

MIB = 1 << 20
CHUNK = 1 * MIB

Tell = Callable[[str], None]


class RawImage:
    """An image that is what is on the disk, byte for byte."""

    def __init__(self, descriptor: int) -> None:
        self._file = descriptor
        self.size = size_of(descriptor)

    def clusters(self) -> Iterator[tuple[int, bytes]]:
        """Yield what is not zeros: offsets, and what is there."""
        offset = 0
        while (offset := next_data(self._file, offset, self.size)) < self.size:
            data = os.pread(self._file, min(CHUNK, self.size - offset), offset)
            if not data:
                raise BadImage("it became shorter while it was read")
            if not is_zero(data):
                yield offset, data
            offset += len(data)


def open_image(descriptor: int) -> Qcow2 | RawImage:
    """Return what reads an image, by how it begins.

    Raises:
        BadImage: it cannot be used.
    """
    is_qcow2 = os.pread(descriptor, len(MAGIC), 0) == MAGIC
    return Qcow2(descriptor) if is_qcow2 else RawImage(descriptor)


def write_image(image: Qcow2 | RawImage, disk: Contents, *, is_zeros: bool, tell: Tell) -> None:
    """Write an image to a disk, and see that it is there.

    Args:
        image: what is written.
        disk: it may be larger.
        is_zeros: the disk is all zeros. Else it becomes so where the image says nothing.
        tell: is told how far it is, in tenths.

    Raises:
        BadImage: it is larger than the disk, or cannot be read.
    """
    size = disk.size
    if not image.size:
        raise BadImage("it is empty")
    if image.size > size:
        raise BadImage(
            f"it takes {-(-image.size // MIB)} MiB, and the disk has {size // MIB}; make it larger"
        )
    done, told = 0, 0
    for offset, data in image.clusters():
        if not is_zeros and offset > done:
            disk.erase(offset - done, done)
        disk.write(data, offset)
        done = offset + len(data)
        if (tenth := done * 10 // image.size) > told:
            told = tenth
            tell(f"{told * 10} % of {-(-image.size // MIB)} MiB")
    if not is_zeros and done < size:
        disk.erase(size - done, done)
    disk.sync()
