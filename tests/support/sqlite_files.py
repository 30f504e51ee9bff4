"""What SQLite does to files, told as it happens: each write before it is made, and each sync.

SQLite reaches the system through a table of functions, its VFS. Ours stand in that table for the
files that somebody watches, tell what they see, and call the ones that were there before. A sync
is told and not made: the simulation's files are in memory.
"""

import ctypes
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_void_p
from typing import Any, Protocol

_OPEN = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)
_WRITE = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_TRUNCATE = CFUNCTYPE(c_int, c_void_p, c_int64)
_SYNC = CFUNCTYPE(c_int, c_void_p, c_int)
_CLOSE = CFUNCTYPE(c_int, c_void_p)


class Watched(Protocol):
    """A file that SQLite has open."""

    def writes(self, offset: int, size: int) -> bool:
        """Note that these bytes are about to be written.

        Returns:
            Whether to be told of the writes that follow, up to the next sync.
        """

    def truncates(self, size: int) -> None:
        """Note that the file is about to lose what is beyond ``size``."""

    def syncs(self) -> None:
        """Note that what was written is asked to be on disk."""


Opened = Callable[[str], Watched | None]  # says who watches a file that was just opened


class _Methods(Structure):
    """``sqlite3_io_methods``; the 13 entries that follow the sync are kept as they are."""

    _fields_ = (
        ("version", c_int), ("close", _CLOSE), ("read", c_void_p), ("write", _WRITE),
        ("truncate", _TRUNCATE), ("sync", _SYNC), ("others", c_void_p * 13),
    )  # fmt: skip


class _Vfs(Structure):
    """The beginning of ``sqlite3_vfs``."""

    _fields_ = (
        ("version", c_int), ("file_size", c_int), ("longest_path", c_int), ("next", c_void_p),
        ("name", c_char_p), ("data", c_void_p), ("open", _OPEN),
    )  # fmt: skip


class SqliteFiles:
    """Stands in SQLite's table; there is one in a process, for good."""

    def __init__(self) -> None:
        library = ctypes.CDLL("libsqlite3.so.0")  # the one that the module sqlite3 is linked with
        library.sqlite3_initialize()
        library.sqlite3_vfs_find.restype = POINTER(_Vfs)
        vfs = library.sqlite3_vfs_find(None).contents
        self.watchers: list[Opened] = []
        self._files: dict[int, Watched] = {}  # by the address of SQLite's record
        self._tables: dict[int, _Tables] = {}  # ours, by the address of theirs
        self._open: Any = _OPEN(ctypes.cast(vfs.open, c_void_p).value or 0)
        self._alone = ctypes.addressof(library.sqlite3_vfs_find(b"unix-excl").contents)
        self._ours = _OPEN(self._opens)  # C holds no references
        vfs.open = self._ours

    def _opens(self, vfs: int, name: int | None, file: int, flags: int, told: int | None) -> int:
        # SQLite keeps the very pointer to the name, so it has to be handed on as it came. What is
        # watched no other process opens, so neither locks nor a file for shared memory are needed.
        result: int = self._open(self._alone if self.watchers else vfs, name, file, flags, told)
        if result == 0 and name is not None and self.watchers:
            path = ctypes.string_at(name).decode()
            for opened in self.watchers:
                if (watched := opened(path)) is not None:
                    self._files[file] = watched
                    theirs = c_void_p.from_address(file).value or 0
                    if theirs not in self._tables:
                        self._tables[theirs] = _Tables(theirs, self._files)
                    self._tables[theirs].watch(file)
        return result


class _Tables:
    """Two tables like one of SQLite's, with our functions: one that tells of writes, one not."""

    def __init__(self, theirs: int, files: dict[int, Watched]) -> None:
        before = _Methods.from_address(theirs)
        # Looked up once: each look into the table makes a function object anew.
        their_write, their_truncate, their_close = before.write, before.truncate, before.close

        def write(file: int, data: int, size: int, offset: int) -> int:
            if not files[file].writes(offset, size):
                _use(file, self._quiet)
            return int(their_write(file, data, size, offset))

        def truncate(file: int, size: int) -> int:
            files[file].truncates(size)
            return int(their_truncate(file, size))

        def sync(file: int, _flags: int) -> int:
            files[file].syncs()
            self.watch(file)
            return 0

        def close(file: int) -> int:
            del files[file]
            return int(their_close(file))

        # Each assignment keeps its function alive: C holds no references.
        self._quiet = _Methods.from_buffer_copy(before)
        self._quiet.truncate = _TRUNCATE(truncate)
        self._quiet.sync, self._quiet.close = _SYNC(sync), _CLOSE(close)
        self._telling = _Methods.from_buffer_copy(self._quiet)
        self._telling.write = _WRITE(write)

    def watch(self, file: int) -> None:
        """Tell of what is written to a file from now on."""
        _use(file, self._telling)


def _use(file: int, table: _Methods) -> None:
    c_void_p.from_address(file).value = ctypes.addressof(table)
