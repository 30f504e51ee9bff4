"""The replica: one SQLite file that holds the cluster's state and its newest commits.

Everything here blocks; ``noded.handlers.replica`` keeps it off the event loop.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from common.errors import Conflict, InvalidRequest, NodeFailure
from common.messages import from_json
from common.model.commit import Change, Commit, follows
from common.model.stamp import Stamp
from common.names import JobId, Serial
from common.noderpc.replica import ArchivePage, Behind, Diverged, Page, Row
from noded.durable_file import explaining, sync_directory
from noded.replica.kept import KeptCommits
from noded.replica.schema import NoRoom, companions, connect, create, explain
from noded.replica.tables import (
    archive_rows,
    archived_spans,
    digest_at,
    drop_commits,
    fill_archive,
    kept_commits,
    read_stamp,
    stage_rows,
    swap_in,
    write_commits,
    write_rows,
    write_stamp,
)

PAGE_BYTES = 4 * 2**20  # what one answer holds, unless a single row or commit is larger


class ReplicaFile:
    """The replica at ``path``. No file means the empty state; the first commit makes it.

    Every method raises NodeFailure when the disk is full or broken or the file is damaged;
    the replica is then as it was before.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None
        self._is_alone = False  # whether no other program can open the file
        self._kept = KeptCommits()

    def stamp(self) -> Stamp:
        """Return how far this replica has come."""
        if self._is_absent():
            return Stamp()
        with self._reading() as db:
            return read_stamp(db)

    def newest_job(self) -> JobId:
        """Return the highest job id this replica has ever held, 0 for none."""
        if self._is_absent():
            return JobId(0)
        with self._reading() as db:
            (newest,) = db.execute("SELECT newest_job FROM meta").fetchone()
            return JobId(newest)

    def append(self, commits: tuple[Commit, ...]) -> Stamp:
        """Store commits, all or none; those that are already there are skipped.

        Raises:
            Behind: commits in between are missing; ``serial`` is what is here.
            Diverged: they belong to another history than what is here.
        """
        if not commits:
            return self.stamp()
        if self._is_absent():
            if commits[0].serial > 1:
                # Late, after the replica was erased: not even an empty file may come of it.
                raise self._behind(Stamp(), commits[0])
            create(self._path)
        with self._writing() as db:
            stamp = read_stamp(db)
            new = self._check_known(db, stamp, commits)
            for commit in new:
                if not follows(commit, stamp):
                    raise Diverged(
                        f"Commit {commit.serial} does not follow commit {stamp.serial} of the "
                        f"state file {self._path}.",
                        serial=stamp.serial,
                    )
                stamp = commit.stamp
            if not new:
                return stamp
            write_rows(db, new)
            write_stamp(db, stamp)
            sizes = write_commits(db, new)
            if dropped := self._kept.dropped_for(sizes):
                drop_commits(db, dropped)
        self._kept.replace(dropped, sizes)
        return stamp

    def commits_after(self, serial: Serial) -> tuple[Commit, ...]:
        """Return kept commits above ``serial``, oldest first, as many as fit an answer.

        Raises:
            Behind: the one right after ``serial`` is not kept.
        """
        if self._is_absent():
            return ()
        found: list[Commit] = []
        room = PAGE_BYTES
        with self._reading() as db:
            if serial >= read_stamp(db).serial:
                return ()
            query = (
                "SELECT epoch, serial, digest, changes, bytes FROM commits WHERE serial > ? "
                "ORDER BY serial LIMIT 1000"
            )
            for epoch, number, digest, changes, size in db.execute(query, (serial,)):
                room -= size
                if found and room < 0:
                    break
                found.append(
                    Commit(epoch=epoch, serial=number, digest=digest, changes=self._read(changes))
                )
        if not found or found[0].serial != serial + 1:
            raise Behind(f"Commit {serial + 1} is not kept in {self._path} any more.")
        return tuple(found)

    def read(self, after: tuple[str, str] | None, limit: int) -> Page:
        """Return rows that sort after ``(kind, id)``: at most ``limit``, or what fits an answer."""
        if limit < 1:
            raise InvalidRequest(f"A page of {limit} rows cannot be read; ask for at least 1.")
        if self._is_absent():
            return Page(stamp=Stamp(), rows=(), more=False)
        rows: list[Row] = []
        room, more = PAGE_BYTES, False
        query = "SELECT kind, id, body FROM rows WHERE (kind, id) > (?, ?) ORDER BY kind, id"
        with self._reading() as db:
            for kind, key, text in db.execute(query, after or ("", "")):
                body = text.encode()
                room -= len(body)
                if rows and (len(rows) == limit or room < 0):
                    more = True
                    break
                rows.append(Row(kind=kind, id=key, body=msgspec.Raw(body)))
            return Page(stamp=read_stamp(db), rows=tuple(rows), more=more)

    def restore(
        self, copy: str, rows: tuple[Row, ...], *, first: bool, becomes: Stamp | None
    ) -> None:
        """Take in one part of a whole copy; the last one replaces everything at once.

        Raises:
            Conflict: the part is not of the copy that was begun last.
        """
        self._make_if_absent()
        with self._writing() as db:
            if first:
                db.execute("DELETE FROM staging")
                db.execute("UPDATE meta SET copy = ?", (copy,))
            (expected,) = db.execute("SELECT copy FROM meta").fetchone()
            if expected != copy:
                raise Conflict(
                    f"A part of the copy {copy} came out of turn; expected is "
                    f"{expected or 'none'}. Begin anew."
                )
            stage_rows(db, rows)
            if becomes is not None:
                swap_in(db, becomes)
        if becomes is not None:
            self._kept = KeptCommits()

    def archived(self) -> tuple[tuple[JobId, JobId], ...]:
        """Return which jobs are in the archive: first and last of each run of numbers."""
        if self._is_absent():
            return ()
        with self._reading() as db:
            return archived_spans(db)

    def read_archive(
        self, first: JobId, last: JobId, *, newest_first: bool, limit: int
    ) -> ArchivePage:
        """Return archived jobs in a range of numbers: at most ``limit``, or what fits."""
        if limit < 1:
            raise InvalidRequest(f"A page of {limit} jobs cannot be read; ask for at least 1.")
        if self._is_absent():
            return ArchivePage(stamp=Stamp(), rows=(), more=False)
        rows: list[Row] = []
        room = PAGE_BYTES
        with self._reading() as db:
            stamp = read_stamp(db)
            for row in archive_rows(db, first, last, newest_first=newest_first):
                room -= memoryview(row.body).nbytes
                if rows and (len(rows) == limit or room < 0):
                    return ArchivePage(stamp=stamp, rows=tuple(rows), more=True)
                rows.append(row)
        return ArchivePage(stamp=stamp, rows=tuple(rows), more=False)

    def fill_archive(self, rows: tuple[Row, ...]) -> None:
        """Add archived jobs that another replica has."""
        self._make_if_absent()
        with self._writing() as db:
            fill_archive(db, rows)

    def erase(self) -> None:
        """Delete the file and all its secrets."""
        self.close()
        # The log goes first: it must not outlive its file and be taken for the next one's.
        with explaining(f"delete {self._path}"):
            for file in (*companions(self._path), self._path):
                file.unlink(missing_ok=True)
            with suppress(FileNotFoundError):
                sync_directory(self._path.parent)

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        db, self._db, self._is_alone = self._db, None, False
        if db is not None:
            with suppress(sqlite3.Error):  # what was acknowledged is on disk all the same
                db.close()

    def _is_absent(self) -> bool:
        if self._path.exists():
            return False
        self.close()  # somebody moved it away; what is written to it now would be lost
        return True

    def _make_if_absent(self) -> None:
        if self._is_absent():
            create(self._path)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        db = self._db or self._open()
        try:
            yield db
        except sqlite3.Error as error:
            raise self._broken(error) from error
        if self._is_alone:
            self.close()  # for other programs, and to be opened as usual when there is room

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._reading() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except sqlite3.Error:
                raise  # closing the file takes the transaction back
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")

    def _open(self) -> sqlite3.Connection:
        try:
            db = connect(self._path)
        except NoRoom:  # what is in the file is whole, and has to be told all the same
            db, self._is_alone = connect(self._path, alone=True), True
        self._db = db
        try:
            self._kept = kept_commits(db)
        except sqlite3.Error as error:
            raise self._broken(error) from error
        return db

    def _broken(self, error: sqlite3.Error) -> NodeFailure:
        # After a failed write nothing that SQLite holds in memory is to be trusted.
        self.close()
        return explain(error, self._path)

    def _check_known(
        self, db: sqlite3.Connection, stamp: Stamp, commits: tuple[Commit, ...]
    ) -> tuple[Commit, ...]:
        """Return the commits that are new, if what is here is the history before them."""
        if commits[0].serial > stamp.serial + 1:
            raise self._behind(stamp, commits[0])
        known = [commit for commit in commits if commit.serial <= stamp.serial]
        # Digests are chained: if the last one is the same, so are all before it.
        if known and known[-1].digest != digest_at(db, stamp, known[-1].serial):
            raise Diverged(
                f"Commit {known[-1].serial} is another one in the state file {self._path}, or "
                "is not kept there any more.",
                serial=stamp.serial,
            )
        return commits[len(known) :]

    def _behind(self, stamp: Stamp, next_one: Commit) -> Behind:
        return Behind(
            f"The state file {self._path} ends with commit {stamp.serial}; the one after "
            f"it is missing before commit {next_one.serial}.",
            serial=stamp.serial,
        )

    def _read(self, changes: str) -> tuple[Change, ...]:
        what = f"a commit in the state file {self._path}"
        return from_json(changes, tuple[Change, ...], what=what)
