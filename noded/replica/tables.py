"""Statements on the tables of the replica, each part of somebody's transaction."""

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import starmap

import msgspec

from common.errors import InvalidRequest
from common.messages import to_json
from common.model.commit import ARCHIVE, Change, Commit
from common.model.stamp import Stamp
from common.names import Epoch, JobId, Serial
from common.noderpc.replica import Row
from noded.replica.kept import KeptCommits, Size
from noded.replica.schema import ROWS

SPAN_BLOCK = 4096
_IDS = "FROM archive INDEXED BY archive_ids WHERE id"
ARCHIVED_IDS = f"SELECT id {_IDS} BETWEEN ? AND ? ORDER BY id"
COUNT_ARCHIVED = f"SELECT count(*), max(id) {_IDS} BETWEEN ? AND ?"
NEXT_ARCHIVED = f"SELECT min(id) {_IDS} > ?"
_UPSERT = "INSERT INTO {} VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET body = excluded.body"


def read_stamp(db: sqlite3.Connection) -> Stamp:
    """Return how far the rows have come."""
    epoch, serial, digest = db.execute("SELECT epoch, serial, digest FROM meta").fetchone()
    return Stamp(epoch=Epoch(epoch), serial=Serial(serial), digest=digest)


def digest_at(db: sqlite3.Connection, stamp: Stamp, serial: Serial) -> str | None:
    """Return the digest after commit ``serial``; None if it is not kept."""
    if serial == stamp.serial:
        return stamp.digest
    found = db.execute("SELECT digest FROM commits WHERE serial = ?", (serial,)).fetchone()
    return None if found is None else str(found[0])


def write_stamp(db: sqlite3.Connection, stamp: Stamp) -> None:
    values = (stamp.epoch, stamp.serial, stamp.digest)
    db.execute("UPDATE meta SET epoch = ?, serial = ?, digest = ?", values)


def write_rows(db: sqlite3.Connection, commits: Iterable[Commit]) -> None:
    """Carry out changes; of several to one row only the last is written."""
    changes = [change for each in commits for change in each.changes]
    for change in changes:
        if change.kind == ARCHIVE:  # in their order: a deletion is one of many
            _change_archive(db, change)
    last = {(c.kind, c.id): c for c in changes if c.kind != ARCHIVE}
    db.executemany(
        _UPSERT.format("rows"),
        [(*row, _text(change.body)) for row, change in last.items() if not change.deletes],
    )
    db.executemany(
        "DELETE FROM rows WHERE kind = ? AND id = ?",
        [row for row, change in last.items() if change.deletes],
    )
    jobs = [int(key) for kind, key in last if kind == "job" and key.isdecimal()]
    if jobs:
        _remember_job(db, max(jobs))


def write_commits(db: sqlite3.Connection, commits: Iterable[Commit]) -> list[Size]:
    """Keep commits, to be asked for by others that follow; return their sizes."""
    rows, sizes = [], []
    for commit in commits:
        changes = to_json(commit.changes).decode()
        rows.append((commit.serial, commit.epoch, commit.digest, changes, len(changes)))
        sizes.append(Size(commit.serial, len(changes)))
    db.executemany("INSERT OR REPLACE INTO commits VALUES (?, ?, ?, ?, ?)", rows)
    return sizes


def kept_commits(db: sqlite3.Connection) -> KeptCommits:
    """Return which commits are kept."""
    rows = db.execute("SELECT serial, bytes FROM commits ORDER BY serial")
    return KeptCommits(starmap(Size, rows))


def drop_commits(db: sqlite3.Connection, last: int) -> None:
    """Keep no commits up to ``last`` any more."""
    db.execute("DELETE FROM commits WHERE serial <= ?", (last,))


def archived_spans(db: sqlite3.Connection) -> tuple[tuple[JobId, JobId], ...]:
    """Return first and last of each run of numbers in the archive.

    A block without gaps is only counted, which takes a tenth of the time of looking at each
    number; there may be a million.
    """
    spans: list[tuple[JobId, JobId]] = []
    first = db.execute(NEXT_ARCHIVED, (-1,)).fetchone()[0]
    while first is not None:
        block = (first, first + SPAN_BLOCK - 1)
        count, last = db.execute(COUNT_ARCHIVED, block).fetchone()
        whole = count == last - first + 1
        numbers = () if whole else (number for (number,) in db.execute(ARCHIVED_IDS, block))
        for low, high in [(first, last)] if whole else _runs(numbers):
            if spans and spans[-1][1] == low - 1:
                low = spans.pop()[0]  # noqa: PLW2901 -- it began in the block before
            spans.append((low, high))
        first = db.execute(NEXT_ARCHIVED, (last,)).fetchone()[0]
    return tuple(spans)


def _runs(numbers: Iterable[int]) -> Iterator[tuple[JobId, JobId]]:
    """Yield first and last of each run of rising numbers."""
    first = last = None
    for number in numbers:
        if first is None or last is None:
            first = number
        elif number != last + 1:
            yield JobId(first), JobId(last)
            first = number
        last = number
    if first is not None and last is not None:
        yield JobId(first), JobId(last)


def archive_rows(
    db: sqlite3.Connection, first: JobId, last: JobId, *, newest_first: bool
) -> Iterator[Row]:
    """Yield archived jobs with numbers in a range."""
    order = "DESC" if newest_first else "ASC"
    query = f"SELECT id, body FROM archive WHERE id BETWEEN ? AND ? ORDER BY id {order}"  # noqa: S608 -- one of two words
    for number, body in db.execute(query, (first, last)):
        yield Row(kind=ARCHIVE, id=str(number), body=msgspec.Raw(body.encode()))


def fill_archive(db: sqlite3.Connection, rows: Iterable[Row]) -> None:
    """Add archived jobs; those that are there already stay as they are."""
    pairs = [(_number(row.id), _text(row.body)) for row in rows]
    db.executemany("INSERT INTO archive VALUES (?, ?) ON CONFLICT DO NOTHING", pairs)
    if pairs:
        _remember_job(db, max(number for number, _ in pairs))


def _change_archive(db: sqlite3.Connection, change: Change) -> None:
    number = _number(change.id)
    if change.deletes:
        db.execute("DELETE FROM archive WHERE id <= ?", (number,))
        return
    db.execute(
        "INSERT INTO archive VALUES (?, ?) ON CONFLICT DO UPDATE SET body = excluded.body",
        (number, _text(change.body)),
    )
    _remember_job(db, number)


def _remember_job(db: sqlite3.Connection, number: int) -> None:
    """Keep the highest number of a job that was ever seen: none is given twice."""
    db.execute("UPDATE meta SET newest_job = max(newest_job, ?)", (number,))


def stage_rows(db: sqlite3.Connection, rows: Iterable[Row]) -> None:
    """Put rows of a whole copy aside."""
    db.executemany(_UPSERT.format("staging"), [(row.kind, row.id, _text(row.body)) for row in rows])


def swap_in(db: sqlite3.Connection, stamp: Stamp) -> None:
    """Make the staged rows the only ones, and forget all commits."""
    db.execute("DROP TABLE rows")
    db.execute("ALTER TABLE staging RENAME TO rows")
    db.execute(f"CREATE TABLE staging {ROWS} WITHOUT ROWID")
    db.execute("DELETE FROM commits")
    db.execute(
        "UPDATE meta SET copy = NULL, newest_job = max(newest_job, coalesce("
        "(SELECT max(CAST(id AS INTEGER)) FROM rows WHERE kind = 'job'), 0))"
    )
    write_stamp(db, stamp)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:
        raise InvalidRequest(f"“{text}” is no number of an archived job.")
    return int(text)


def _text(body: msgspec.Raw) -> str:
    try:
        return bytes(body).decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"A row is no UTF-8 text: {error}.") from error
