"""What is on a disk that is kept in a file of QEMU's format, while no QEMU has it open.

It is read as it is, with what it has kept inside. It is written to only where its clusters have
their place, and are nobody else's: so are all of an image that was just made, and nothing of what
says where they are has to be changed.

What an image has kept can be read while a guest goes on: QEMU writes elsewhere then.
Source: docs/interop/qcow2.txt of QEMU 7.2.
"""

import errno
import os
from collections.abc import Iterator

from noded.copies import device
from noded.images.qcow2 import BadImage, Qcow2

_OWN = 1 << 63  # of a cluster: nothing else refers to it


class Inside:
    """See ``noded.images.contents.Contents``."""

    def __init__(self, descriptor: int, snapshot: str = "") -> None:
        """Read the tables of an image, or of what it has kept."""
        self._descriptor = descriptor
        try:
            self._image = Qcow2(descriptor, snapshot)
        except BadImage as error:
            raise _unusable(error) from error
        self.size = self._image.size

    def read(self, length: int, offset: int) -> bytes:
        parts = []
        for place, part in self._runs(length, offset):
            if place is None:
                parts.append(bytes(part))
            else:
                parts.append(device.read_exactly(self._descriptor, part, place))
        return b"".join(parts)

    def next_data(self, offset: int, end: int) -> int:
        for place, part in self._runs(end - offset, offset):
            if place is not None:
                found = device.next_data(self._descriptor, place, place + part)
                if found < place + part:
                    return offset + found - place
            offset += part
        return end

    def write(self, data: bytes, offset: int) -> None:
        done = 0
        for place, part in self._runs(len(data), offset, changes=True):
            if place is None:
                raise _filled()
            device.write_all(self._descriptor, data[done : done + part], place)
            done += part

    def write_zeros(self, length: int, offset: int) -> None:
        for place, part in self._runs(length, offset, changes=True):
            if place is not None:
                device.write_zeros(self._descriptor, part, place)

    def erase(self, length: int, offset: int) -> None:
        for place, part in self._runs(length, offset, changes=True):
            if place is not None:
                device.zero_range(self._descriptor, part, place)

    def sync(self) -> None:
        os.fsync(self._descriptor)

    def _runs(
        self, length: int, offset: int, *, changes: bool = False
    ) -> Iterator[tuple[int | None, int]]:
        """Yield where a part of the disk is in the file, piece by piece; None: it is zeros.

        Raises:
            OSError: it is outside of the disk; or cannot be written without QEMU.
        """
        end = offset + length
        if end > self.size:
            raise OSError(errno.EIO, "it ends before its end")
        begin, run = None, 0
        while offset < end:
            within = offset % self._image.cluster
            part = min(self._image.cluster - within, end - offset)
            place = self._place(offset, within, changes=changes)
            is_next = place is None if begin is None else place == begin + run
            if run and not is_next:
                yield begin, run
                run = 0
            if not run:
                begin = place
            run += part
            offset += part
        if run:
            yield begin, run

    def _place(self, offset: int, within: int, *, changes: bool) -> int | None:
        try:
            entry = self._image.entry(offset)
            place = self._image.place(entry)
        except (BadImage, IndexError) as error:
            raise _unusable(error) from error
        if changes and place is not None and not entry & _OWN:
            raise _filled()
        return None if place is None else place + within


def _unusable(error: Exception) -> OSError:
    return OSError(errno.EINVAL, f"the image cannot be used: {error}")


def _filled() -> OSError:
    return OSError(
        errno.EROFS,
        "a guest has changed how this image is laid out, or it keeps snapshots; only one that was "
        "just made is filled from outside, as by recreate-disks",
    )
