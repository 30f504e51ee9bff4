"""The tables of the replica, and how the file is opened.

Made to be looked at: ``sqlite3 state.sqlite "select body from rows where kind='node'" | jq``.
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from common.errors import NodeFailure
from common.model.commit import ARCHIVE
from noded.durable_file import explaining, sync_directory

VERSION = 2  # of the tables below, in the file's ``user_version``
CHECKPOINT_PAGES = 1000  # of 4 KiB, at least
CACHE_KIB = 512  # of pages, instead of 2 MiB: noded's memory is locked, and rows are not reread
BUSY_S = 2.0  # how long another program, such as the sqlite3 shell, may hold us up

ROWS = "(kind TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (kind, id))"
TABLES = (
    f"CREATE TABLE rows {ROWS} WITHOUT ROWID",
    f"CREATE TABLE staging {ROWS} WITHOUT ROWID",  # a whole copy on its way in
    "CREATE TABLE commits (serial INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, "
    "digest TEXT NOT NULL, changes TEXT NOT NULL, bytes INTEGER NOT NULL)",
    # One row: the stamp, the highest job id ever seen, the copy that is on its way in.
    "CREATE TABLE meta (epoch INTEGER NOT NULL, serial INTEGER NOT NULL, digest TEXT NOT NULL, "
    "newest_job INTEGER NOT NULL, copy TEXT)",
    "INSERT INTO meta VALUES (0, 0, '', 0, NULL)",
)
# Large, and looked at only for one job or a page of them. The index is there to list the numbers
# without touching the bodies.
ARCHIVE_TABLES = (
    "CREATE TABLE archive (id INTEGER PRIMARY KEY, body TEXT NOT NULL)",
    "CREATE INDEX archive_ids ON archive (id)",
)
CHECKED = ("rows", "staging", "commits", "meta")  # whole, whenever the file is opened


class NoRoom(NodeFailure):
    """The state file could not be written, or opened in the usual way, which writes beside it."""

    code = "node-failure.no-room"


def create(path: Path) -> None:
    """Make an empty replica; only root may read it.

    It is made beside its place and then renamed, so that a file without tables is never a
    new one but always a damaged one.

    Raises:
        NodeFailure: there is no room, or no such directory.
    """
    unborn = path.with_name(f"{path.name}.new")
    with explaining(f"make the state file {path}"):
        # A log left by a deleted file must never be taken for the new file's.
        for stale in (unborn, *companions(unborn), *companions(path)):
            stale.unlink(missing_ok=True)
        os.close(os.open(unborn, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        try:
            with closing(sqlite3.connect(unborn, isolation_level=None)) as connection:
                _make_tables(connection)
        except sqlite3.Error as error:
            raise explain(error, path) from error
        unborn.rename(path)
        sync_directory(path.parent)


def connect(path: Path, *, alone: bool = False) -> sqlite3.Connection:
    """Open the replica at ``path``, which exists.

    Args:
        path: the file.
        alone: keep the index of its log in memory instead of a file beside it, which takes room on
            the disk; no other program can open the replica meanwhile.

    Raises:
        NodeFailure: the file is damaged, of another version, or cannot be read. It is left
            as it is, for whoever wants to save something from it.
    """
    with explaining(f"open the state file {path}"):
        path.chmod(0o600)
    try:
        connection = sqlite3.connect(
            path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
        )
    except sqlite3.Error as error:
        raise explain(error, path) from error
    try:
        if alone:
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        version = _check(connection, path)  # first: what follows may write
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        # All candidates write the same, so with the same limit all would move their logs into
        # their files at the same moment, and the commit of that moment would wait for it.
        limit = CHECKPOINT_PAGES + path.stat().st_ino % CHECKPOINT_PAGES
        connection.execute(f"PRAGMA wal_autocheckpoint={limit}")
        connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
        if version == 1:
            _add_archive(connection)
    except sqlite3.Error as error:
        connection.close()
        raise explain(error, path) from error
    except NodeFailure:
        connection.close()
        raise
    return connection


def companions(path: Path) -> tuple[Path, Path, Path]:
    """Return the files that SQLite keeps beside the one at ``path``, which may be absent."""
    wal, shm, journal = (path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal"))
    return wal, shm, journal


def explain(error: sqlite3.Error, path: Path) -> NodeFailure:
    """Say what an error of SQLite means for the operator."""
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF
    if primary == sqlite3.SQLITE_FULL:
        text = f"The disk is full under the state file {path}; make room, nothing was lost."
    elif primary == sqlite3.SQLITE_BUSY:
        text = f"The state file {path} is locked by another program; end it."
    elif primary in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
        text = f"The state file {path} cannot be written: {error}. Is its disk full or broken?"
        return NoRoom(text, path=str(path))
    else:
        text = (
            f"The state file {path} is damaged: {error}. Move it away, with its -wal and -shm; "
            "the master then sends a new copy."
        )
    return NodeFailure(text, path=str(path))


def _make_tables(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for statement in (*TABLES, *ARCHIVE_TABLES):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version={VERSION}")  # part of the transaction
    connection.execute("COMMIT")


def _add_archive(connection: sqlite3.Connection) -> None:
    """Bring a file of version 1 to this one; a newer master may have archived into its rows."""
    connection.execute("BEGIN IMMEDIATE")
    for statement in ARCHIVE_TABLES:
        connection.execute(statement)
    connection.execute(
        "INSERT INTO archive SELECT CAST(id AS INTEGER), body FROM rows WHERE kind = ?", (ARCHIVE,)
    )
    connection.execute("DELETE FROM rows WHERE kind = ?", (ARCHIVE,))
    connection.execute(f"PRAGMA user_version={VERSION}")
    connection.execute("COMMIT")


def _check(connection: sqlite3.Connection, path: Path) -> int:
    """Return the version of a file that is whole, as far as it is worth the time to look.

    The archive is not looked through: it may have a gigabyte, and nothing depends on it.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise NodeFailure(
            f"The state file {path} is of version {version}, and this noded knows {VERSION}: "
            "it is older than the noded that wrote the file.",
            path=str(path),
        )
    if version < 1:
        raise sqlite3.DatabaseError("it has no tables")
    for table in CHECKED:
        (verdict,) = connection.execute(f"PRAGMA quick_check({table})").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
    return int(version)
