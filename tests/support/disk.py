"""The disks of simulated machines: they know what was synced, and a power cut takes the rest.

What is below a machine's directory are ordinary files, in memory. ``os.fsync`` and SQLite's own
syncs are noted; a file that was written and not synced, or whose name was not, is after a power
cut as it was before, or as it should be: chance decides, as with a real disk.
"""

import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from random import Random
from unittest.mock import patch

from tests.support.sqlite_files import SqliteFiles, Watched

Names = dict[str, int]  # in a directory: the number of each file
Tree = dict[str, "bytes | Tree"]
NOTHING: Mapping[str, bytes] = {}
_REAL_FSYNC = os.fsync


@cache
def _sqlite_files() -> SqliteFiles:
    return SqliteFiles()


class Disk:
    """All files below one directory, and what of them is durable."""

    def __init__(self, root: Path, random: Random) -> None:
        self._root, self._random = root, random
        self._below = f"{root}/"
        self._names: dict[int, Names] = {}  # as synced, by the number of the directory
        self._contents: dict[int, bytes] = {}  # as synced, by the number of the file
        self._databases: dict[int, _Database] = {}  # what SQLite writes

    @contextmanager
    def watched(self, written: Mapping[str, bytes] = NOTHING) -> Iterator[None]:
        """Note all syncs for the length of a block. What is there by then is durable.

        Of ``written`` it is known what the files hold, by path: they need not be read.
        """
        self.have_all_durable(self._root, written)
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

    def have_all_durable(
        self, directory: Path | str, written: Mapping[str, bytes] = NOTHING
    ) -> None:
        """Count everything below a directory as synced."""
        # Without pathlib, which takes longer for these few files than reading them.
        names = self._names[os.stat(directory).st_ino] = {}
        with os.scandir(directory) as found:
            for entry in found:
                number = names[entry.name] = entry.inode()
                if not entry.is_dir():
                    known = written.get(entry.path)
                    self._contents[number] = _read(entry.path) if known is None else known
                elif not entry.is_symlink():
                    self.have_all_durable(entry.path, written)

    def after_a_power_cut(self, directory: Path) -> Tree:
        """Return what will be found below a directory if the power fails now."""
        return self._tree(directory.stat().st_ino, _names(directory), directory)

    def become(self, directory: Path, tree: Tree) -> None:
        """Have exactly this below a directory, all of it durable."""
        shutil.rmtree(directory)
        _write(directory, tree)
        self.have_all_durable(directory)

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
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if not f"{path}/".startswith(self._below):
            return
        if stat.S_ISDIR(status.st_mode):
            self._names[status.st_ino] = _names(path)
        else:
            self._contents[status.st_ino] = _read(path)

    def _opened(self, path: Path) -> Watched | None:
        if not path.is_relative_to(self._root):
            return None
        number = path.stat().st_ino
        if number not in self._databases:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            self._databases[number] = _Database(descriptor, partial(self._sync_name, f"{path}"))
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


@dataclass
class _Database:
    """A file of SQLite's, with what undoes the writes that are not synced."""

    descriptor: int  # our own: the file may lose its name
    sync_name: Callable[[], None]
    before: list[tuple[int, bytes, int]] = field(default_factory=list)  # offset, bytes, file size
    _size: int = 0

    def opened(self) -> None:
        # From now on it is known without asking at every write.
        self._size = os.fstat(self.descriptor).st_size

    def writes(self, offset: int, size: int) -> None:
        whole = self._size
        old = os.pread(self.descriptor, size, offset) if offset < whole else b""
        self.before.append((offset, old, whole))
        self._size = max(whole, offset + size)

    def truncates(self, size: int) -> None:
        whole, self._size = self._size, size
        self.before.append((size, os.pread(self.descriptor, whole, size), whole))

    def syncs(self) -> None:
        self.before.clear()
        self.sync_name()

    def after_a_power_cut(self, random: Random) -> bytes:
        """Return what is found: of the writes that were not synced the first few, or none."""
        found = bytearray(os.pread(self.descriptor, os.fstat(self.descriptor).st_size, 0))
        reached_the_disk = random.randint(0, len(self.before))
        for offset, old, size in reversed(self.before[reached_the_disk:]):
            found[offset : offset + len(old)] = old
            del found[size:]
        return bytes(found)


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)  # half the time that ``open`` takes
    try:
        return os.read(descriptor, os.fstat(descriptor).st_size)
    finally:
        os.close(descriptor)


def _names(directory: Path | str) -> Names:
    with os.scandir(directory) as found:
        return {entry.name: entry.inode() for entry in found}


def _write(directory: Path, tree: Tree) -> None:
    directory.mkdir(mode=0o700)
    for name, item in tree.items():
        if isinstance(item, bytes):
            (directory / name).write_bytes(item)
        else:
            _write(directory / name, item)
