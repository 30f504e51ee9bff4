"""Statements on the tables of the replica, each part of somebody's transaction."""

import sqlite3
from collections.abc import Iterable

import msgspec

from common.errors import InvalidRequest
from common.model.commit import Commit
from common.model.stamp import Stamp
from common.names import Epoch, Serial
from common.noderpc.replica import Row
from noded.replica.schema import ROWS

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
    last = {(change.kind, change.id): change for each in commits for change in each.changes}
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
        db.execute("UPDATE meta SET newest_job = max(newest_job, ?)", (max(jobs),))


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


def _text(body: msgspec.Raw) -> str:
    try:
        return bytes(body).decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"A row is no UTF-8 text: {error}.") from error
