"""The disks of simulated machines: they know what was synced, and a power cut takes the rest.

What is below a machine's directory are ordinary files, in memory. ``os.fsync`` and SQLite's own
syncs are noted; a file that was written and not synced, or whose name was not, is after a power
cut as it was before, or as it should be: chance decides, as with a real disk.
"""

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from random import Random
from unittest.mock import patch

from tests.support.sqlite_files import SqliteFiles, Watched

Names = dict[str, int]  # in a directory: the number of each file
Tree = dict[str, "bytes | Tree"]
BLOCK = 4096  # of what a log has grown by, each reaches the disk or does not
_REAL_FSYNC = os.fsync


@cache
def _sqlite_files() -> SqliteFiles:
    return SqliteFiles()


class Disk:
    """All files below one directory, and what of them is durable: at first, what is there."""

    def __init__(self, root: Path, random: Random) -> None:
        self._random = random
        self._below = f"{root}/"
        self._device = root.stat().st_dev  # numbers of files mean nothing on another one
        self._names: dict[int, Names] = {}  # as synced, by the number of the directory
        self._contents: dict[int, bytes] = {}  # as synced, by the number of the file
        self._databases: dict[int, _Database] = {}  # what SQLite writes
        self.have_all_durable(root)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Note all syncs for the length of a block."""
        watchers = _sqlite_files().watchers
        watchers.append(self._opened)
        others = os.fsync  # of the disks of another cluster, if there is one

        def sync(descriptor: int) -> None:
            self._sync(descriptor)
            if others is not _REAL_FSYNC:
                others(descriptor)

        try:
            with patch("os.fsync", sync):
                yield
        finally:
            watchers.remove(self._opened)
            for database in self._databases.values():
                os.close(database.descriptor)

    def have_all_durable(self, directory: Path) -> None:
        """Count everything below a directory as synced."""
        self._names[directory.stat().st_ino] = _names(directory)
        for path in directory.iterdir():
            if not path.is_dir():
                self._contents[path.stat().st_ino] = path.read_bytes()
            elif not path.is_symlink():
                self.have_all_durable(path)

    def write(self, directory: Path, tree: Tree) -> None:
        """Make a directory that has exactly this below it, all of it durable."""
        self._write(f"{directory}", tree)

    def after_a_power_cut(self, directory: Path) -> Tree:
        """Return what will be found below a directory if the power fails now."""
        return self._tree(directory.stat().st_ino, _names(directory), directory)

    def become(self, directory: Path, tree: Tree) -> None:
        """Have exactly this below a directory, all of it durable."""
        shutil.rmtree(directory)
        self.write(directory, tree)

    def _write(self, path: str, tree: Tree) -> int:
        # By system calls alone, and noted on the way: a cluster begins with more than 100 files.
        os.mkdir(path, 0o700)
        number = os.stat(path).st_ino
        names = self._names[number] = {}
        for name, item in tree.items():
            if isinstance(item, bytes):
                names[name] = inode = _create(f"{path}/{name}", item)
                self._contents[inode] = item
            else:
                names[name] = self._write(f"{path}/{name}", item)
        return number

    def _tree(self, number: int, present: Names, place: Path) -> Tree:
        synced = self._names.get(number, {})
        tree: Tree = {}
        for name in sorted(synced.keys() | present.keys()):
            found = synced.get(name), present.get(name)
            inode = found[0] if found[0] == found[1] else self._random.choice(found)
            if inode is None or name.endswith("-shm"):  # that is shared memory, and no file
                continue
            path = place / name
            there = inode == present.get(name)
            if inode in self._names or (there and path.is_dir()):
                tree[name] = self._tree(inode, _names(path) if there else {}, path)
            elif inode in self._databases:
                tree[name] = self._databases[inode].after_a_power_cut(self._random)
            else:
                synced_bytes = self._contents.get(inode, b"")
                written = path.read_bytes() if there else synced_bytes
                tree[name] = self._random.choice((synced_bytes, written))
        return tree

    def _sync(self, descriptor: int) -> None:
        status = os.fstat(descriptor)
        if status.st_dev != self._device:
            return
        # One that is not below our directory does no harm: nobody asks for it.
        if stat.S_ISDIR(status.st_mode):
            self._names[status.st_ino] = _names(descriptor)
        else:
            self._contents[status.st_ino] = _read(f"/proc/self/fd/{descriptor}")

    def _opened(self, path: str) -> Watched | None:
        if not path.startswith(self._below):
            return None
        number = os.stat(path).st_ino
        if number not in self._databases:
            self._databases[number] = _Database(path, partial(self._sync_name, path))
        self._databases[number].opened()
        return self._databases[number]

    def _sync_name(self, path: str) -> None:
        """Do what SQLite does after the first sync of a log or journal, with its directory."""
        if not path.endswith(("-wal", "-journal")):
            return
        directory, name = os.path.split(path)
        with suppress(FileNotFoundError):
            number = os.stat(path).st_ino
            self._names.setdefault(os.stat(directory).st_ino, {})[name] = number


class _Database:
    """A file of SQLite's, with what undoes the writes that are not synced."""

    def __init__(self, path: str, sync_name: Callable[[], None]) -> None:
        self.descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)  # our own: it may be renamed
        self._is_log = path.endswith("-wal")
        self._sync_name = sync_name
        self._name_is_synced = False
        self._before: list[tuple[int, bytes, int]] = []  # offset, bytes, file size
        self._size = self._size_now()  # but for what a log has grown by since it was synced

    def opened(self) -> None:
        self._name_is_synced = False  # SQLite does that with the first sync after it has opened it

    def writes(self, offset: int, size: int) -> bool:
        whole = self._size
        if self._is_log and offset >= whole:
            return False  # what follows is behind it: a log begins anew only when all is synced
        old = os.pread(self.descriptor, size, offset) if offset < whole else b""
        self._before.append((offset, old, whole))
        self._size = max(whole, offset + size)
        return True

    def truncates(self, size: int) -> None:
        if size < self._size:
            whole, self._size = self._size, size
            self._before.append((size, os.pread(self.descriptor, whole - size, size), whole))

    def syncs(self) -> None:
        self._before.clear()
        if self._is_log:
            self._size = self._size_now()
        if not self._name_is_synced:
            self._sync_name()
            self._name_is_synced = True

    def _size_now(self) -> int:
        return os.fstat(self.descriptor).st_size

    def after_a_power_cut(self, random: Random) -> bytes:
        """Return what is found: of the writes that were not synced the first few, or none."""
        found = bytearray(os.pread(self.descriptor, self._size_now(), 0))
        grown = ((end, b"", end) for end in range(self._size, len(found), BLOCK))
        before = [*self._before, *grown]
        reached_the_disk = random.randint(0, len(before))
        for offset, old, size in reversed(before[reached_the_disk:]):
            found[offset : offset + len(old)] = old
            del found[size:]
        return bytes(found)


def _create(path: str, content: bytes) -> int:
    """Write a new file, which the group of its daemon may read; return its number."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640)
    try:
        os.write(descriptor, content)
        return os.fstat(descriptor).st_ino
    finally:
        os.close(descriptor)


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)  # half the time that ``open`` takes
    try:
        return os.read(descriptor, os.fstat(descriptor).st_size)
    finally:
        os.close(descriptor)


def _names(directory: Path | int) -> Names:
    with os.scandir(directory) as found:
        return {entry.name: entry.inode() for entry in found}
