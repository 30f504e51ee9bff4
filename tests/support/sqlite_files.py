"""What SQLite does to files, told as it happens: each write before it is made, and each sync.

SQLite reaches the system through a table of functions, its VFS. Ours stand in that table for the
files that somebody watches, tell what they see, and call the ones that were there before. A sync
is told and not made: the simulation's files are in memory.
"""

import ctypes
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_void_p
from pathlib import Path
from typing import Any, Protocol

_OPEN = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)
_WRITE = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_TRUNCATE = CFUNCTYPE(c_int, c_void_p, c_int64)
_SYNC = CFUNCTYPE(c_int, c_void_p, c_int)
_CLOSE = CFUNCTYPE(c_int, c_void_p)


class Watched(Protocol):
    """A file that SQLite has open."""

    def writes(self, offset: int, size: int) -> None:
        """Note that these bytes are about to be written."""

    def truncates(self, size: int) -> None:
        """Note that the file is about to lose what is beyond ``size``."""

    def syncs(self) -> None:
        """Note that what was written is asked to be on disk."""


Opened = Callable[[Path], Watched | None]  # says who watches a file that was just opened


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
        self._tables: dict[int, tuple[_Methods, _Methods]] = {}  # theirs, by its address; ours
        self._open: Any = _OPEN(ctypes.cast(vfs.open, c_void_p).value or 0)
        self._ours = _OPEN(self._opens)  # C holds no references
        vfs.open = self._ours

    def _opens(self, vfs: int, name: int | None, file: int, flags: int, told: int | None) -> int:
        # SQLite keeps the very pointer to the name, so it has to be handed on as it came.
        result: int = self._open(vfs, name, file, flags, told)
        if result == 0 and name is not None and self.watchers:
            path = Path(ctypes.string_at(name).decode())
            for opened in self.watchers:
                if (watched := opened(path)) is not None:
                    self._files[file] = watched
                    methods = c_void_p.from_address(file)
                    methods.value = self._instead_of(methods.value or 0)
        return result

    def _instead_of(self, theirs: int) -> int:
        """Return the address of a table like ``theirs``, with our functions in it."""
        if theirs not in self._tables:
            table = _Methods.from_address(theirs)
            self._tables[theirs] = table, _changed(table, self._files)
        return ctypes.addressof(self._tables[theirs][1])


def _changed(before: _Methods, files: dict[int, Watched]) -> _Methods:
    # Looked up once: each look into the table makes a function object anew.
    their_write, their_truncate, their_close = before.write, before.truncate, before.close

    def write(file: int, data: int, size: int, offset: int) -> int:
        files[file].writes(offset, size)
        return int(their_write(file, data, size, offset))

    def truncate(file: int, size: int) -> int:
        files[file].truncates(size)
        return int(their_truncate(file, size))

    def sync(file: int, _flags: int) -> int:
        files[file].syncs()
        return 0

    def close(file: int) -> int:
        del files[file]
        return int(their_close(file))

    after = _Methods.from_buffer_copy(before)
    after.write, after.truncate = _WRITE(write), _TRUNCATE(truncate)
    after.sync, after.close = _SYNC(sync), _CLOSE(close)
    return after
