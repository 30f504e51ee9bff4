"""Where a disk's file is or will be, reached without following a symbolic link."""

import errno
import os
import stat
from contextlib import ExitStack, suppress
from typing import Self

from common.errors import InvalidRequest, NodeFailure
from common.names import InstanceId, MiB
from common.noderpc.disks import DiskReport, DiskSpec
from common.units import format_mib
from noded.storage.directories import path_of
from noded.storage.file_calls import read_label

MIB = 1 << 20
NEVER_BY_LINK = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Place:
    """The directories from the allowed one down to a disk's file, held open.

    Every step is taken from the descriptor of the directory before, so nobody who can write
    there can lead us elsewhere, not even between a check and the action.
    """

    def __init__(self, root: str, names: tuple[str, ...]) -> None:
        """Take what ``noded.storage.directories.locate`` returned."""
        self.root = root
        self.name = names[-1]
        self.unfinished = f".{self.name}.new"
        self._between = names[:-1]
        self._opened: list[int] = []
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    @property
    def directory(self) -> int:
        """Descriptor of the directory that holds the file; after ``enter`` or ``make``."""
        return self._opened[-1]

    def enter(self) -> bool:
        """Open the directories; False if one does not exist.

        Raises:
            InvalidRequest: a symbolic link is in the way.
        """
        try:
            self._open(self.root)
            for name in self._between:
                self._open(name)
        except FileNotFoundError:
            return False
        return True

    def make(self) -> None:
        """Open the directories, and make those below the allowed one.

        Raises:
            NodeFailure: the allowed directory itself does not exist. It is never made here:
                it may be the place of a file system that is not mounted now.
            InvalidRequest: a symbolic link is in the way.
        """
        try:
            self._open(self.root)
        except FileNotFoundError as error:
            raise NodeFailure(
                f"The directory {self.root} does not exist on this node; create or mount it.",
                path=self.root,
            ) from error
        for name in self._between:
            with suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=self.directory)
                os.fsync(self.directory)
            self._open(name)

    def _open(self, name: str) -> None:
        # The allowed directory may well be a link: whoever set the node up made it.
        parent, flags = None, _DIRECTORY
        if self._opened:
            parent, flags = self.directory, _DIRECTORY | os.O_NOFOLLOW
        try:
            descriptor = os.open(name, flags, dir_fd=parent)
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
            raise InvalidRequest(
                f"{name!r} on the way to {self.name!r} in {self.root} is a symbolic link or a "
                "file; disks are kept in real directories only.",
                path=name,
            ) from error
        self._closing.callback(os.close, descriptor)
        self._opened.append(descriptor)

    def open_file(self, access: int) -> int | None:
        """Open the file, None if something else is there; the descriptor is the caller's.

        Opening a device or a pipe may have effects: a watchdog restarts the machine. So what is
        there is first got hold of and looked at, which opens nothing, and then opened itself,
        whatever is in its place by now.

        Args:
            access: ``O_RDONLY`` or ``O_RDWR``.

        Raises:
            OSError: nothing is there, or it cannot be opened.
        """
        flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
        found = os.open(self.name, flags, dir_fd=self.directory)
        try:
            if not stat.S_ISREG(os.fstat(found).st_mode):
                return None
            return os.open(f"/proc/self/fd/{found}", access | os.O_NONBLOCK | os.O_CLOEXEC)
        finally:
            os.close(found)

    def examine(self, disk: DiskSpec) -> DiskReport | str:
        """Return the disk as it is; else what is in its place, "" for nothing."""
        try:
            descriptor = self.open_file(os.O_RDONLY)
        except FileNotFoundError:
            return ""
        if descriptor is None:
            return "something that is no regular file"
        try:
            label, found = read_label(descriptor), os.fstat(descriptor)
        finally:
            os.close(descriptor)
        size = MiB(-(-found.st_size // MIB))
        if label is None:  # what is called by the disk's UUID is nobody else's
            report = DiskReport(id=disk.id, instance=None, size=size)
            is_it = size == disk.size or self.name.startswith(disk.id)
            return report if is_it else f"a file of {format_mib(size)} without label"
        labelled, instance = label
        if labelled != disk.id:
            return f"the disk {labelled}"
        return DiskReport(id=disk.id, instance=InstanceId(instance), size=size)

    @property
    def free_mib(self) -> MiB:
        """How much space there is where the file is; after ``enter`` or ``make``."""
        space = os.fstatvfs(self.directory)
        return MiB(space.f_bavail * space.f_frsize // MIB)

    def check_space(self, disk: DiskSpec, more: MiB) -> None:
        """Refuse a disk that would not fit, were all of it written to.

        Raises:
            NodeFailure: says what is free.
        """
        if self.free_mib < more:
            raise self._full(f"for a disk of {format_mib(more)} in {self.root}", disk)

    def check_space_to_grow(self, disk: DiskSpec, more: MiB) -> None:
        """Refuse growth for which there is no space.

        Raises:
            NodeFailure: says what is free.
        """
        if self.free_mib < more:
            raise self._full(f"to grow the disk {path_of(disk)} by {format_mib(more)}", disk)

    def _full(self, what: str, disk: DiskSpec) -> NodeFailure:
        free_mib = self.free_mib
        return NodeFailure(
            f"There is no space {what}: {format_mib(free_mib)} are free.",
            path=path_of(disk),
            free_mib=free_mib,
        )

    def unlink(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.directory)

    def finish(self) -> None:
        """Have the unfinished file in its place, also after a power cut."""
        os.rename(self.unfinished, self.name, src_dir_fd=self.directory, dst_dir_fd=self.directory)
        os.fsync(self.directory)

    def leave_no_empty_directory(self) -> None:
        """Remove the directory that the file is in, the instance's own, if it is empty.

        Those above it stay: they are for several instances, and another one may be about to get
        a directory there.
        """
        if not self._between or len(self._opened) <= len(self._between):
            return
        parent = self._opened[-2]
        with suppress(OSError):  # other disks of the instance are in it
            os.rmdir(self._between[-1], dir_fd=parent)
            os.fsync(parent)
