"""What the real replica promises beyond the declaration: its file, its thread, its ballot."""

import asyncio
import json
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from random import Random
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InvalidRequest
from common.model.commit import Change, Commit, next_commit
from common.model.stamp import Stamp
from common.names import Epoch
from noded.handlers.replica import ReplicaHandlers
from noded.replica.schema import ARCHIVE_TABLES
from noded.replica.store import ReplicaFile
from noded.replica.tables import (
    ARCHIVED_IDS,
    COUNT_ARCHIVED,
    NEXT_ARCHIVED,
    archived_spans,
)
from tests.support.clock import simulate
from tests.support.replicas import delete, history, put, row

COMMITS = history(20, Random(1))
SPAN_BLOCK = "noded.replica.tables.SPAN_BLOCK"


def test_an_operator_can_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"

    async def story() -> None:
        replica = ReplicaHandlers(path)
        change = put("node", "u1", {"name": "alpha"})
        await replica.append(commits=(next_commit(Stamp(), Epoch(1), (change,)),))
        with sqlite3.connect(path) as other:  # while noded has it open
            (body,) = other.execute("SELECT body FROM rows WHERE kind = 'node'").fetchone()
        other.close()
        assert json.loads(body) == {"name": "alpha"}
        await replica.close()

    simulate(story())


def test_only_its_owner_can_read_the_file(tmp_path: Path) -> None:
    replica = ReplicaFile(tmp_path / "state.sqlite")
    replica.append(COMMITS)
    files = {each.name: each.stat().st_mode & 0o777 for each in tmp_path.iterdir()}
    assert files == {f"state.sqlite{end}": 0o600 for end in ("", "-wal", "-shm")}
    replica.close()


def test_the_ballot_gets_the_stamp_and_the_newest_job(tmp_path: Path) -> None:
    async def story() -> None:
        replica = ReplicaHandlers(tmp_path / "state.sqlite")
        assert await replica.for_ballot() == (None, None)
        first = next_commit(Stamp(), Epoch(1), (put("job", "9", {}), put("job", "10", {})))
        second = next_commit(first.stamp, Epoch(1), (delete("job", "10"),))
        await replica.append(commits=(first, second))
        assert await replica.for_ballot() == (second.stamp, 10)
        rows = (row(("job", "77"), b"{}"),)
        await replica.restore(copy="a", rows=rows, first=True, becomes=first.stamp)
        assert await replica.for_ballot() == (first.stamp, 77)
        await replica.close()

    simulate(story())


def test_a_file_that_was_moved_away_is_not_written_to(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    replica = ReplicaFile(path)
    replica.append(COMMITS[:5])
    path.rename(tmp_path / "kept")
    assert replica.stamp() == Stamp()
    assert replica.append(COMMITS) == COMMITS[-1].stamp
    replica.close()
    assert ReplicaFile(path).stamp() == COMMITS[-1].stamp


def test_a_row_that_is_no_text_is_refused(tmp_path: Path) -> None:
    replica = ReplicaFile(tmp_path / "state.sqlite")
    change = Change(kind="node", id="1", body=msgspec.Raw(b'"\xff"'))
    with pytest.raises(InvalidRequest, match="no UTF-8"):
        replica.append((next_commit(Stamp(), Epoch(1), (change,)),))
    assert replica.append(COMMITS) == COMMITS[-1].stamp
    replica.close()


def test_a_cancelled_call_ends_only_after_its_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the fence would let a new master in while the old one's commit is being written."""
    begun, go_on = threading.Event(), threading.Event()
    append = ReplicaFile.append

    def slow_append(self: ReplicaFile, commits: tuple[Commit, ...]) -> Stamp:
        begun.set()
        go_on.wait(10)
        return append(self, commits)

    monkeypatch.setattr(ReplicaFile, "append", slow_append)

    async def story() -> None:
        replica = ReplicaHandlers(tmp_path / "state.sqlite")
        async with asyncio.TaskGroup() as group:
            writing = group.create_task(replica.append(commits=COMMITS))
            await asyncio.to_thread(begun.wait, 10)
            for _ in range(3):
                writing.cancel()
                await asyncio.sleep(0)
                assert not writing.done()
            go_on.set()
        assert writing.cancelled()
        assert await replica.stamp() == COMMITS[-1].stamp
        await replica.close()

    asyncio.run(story())


def test_a_file_of_the_first_version_gets_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    replica = ReplicaFile(path)
    stamp = replica.append(COMMITS)
    before = replica.read(None, 1000).rows
    replica.close()
    with closing(sqlite3.connect(path)) as other:
        other.executescript(
            "DROP TABLE archive; PRAGMA user_version=1;"
            "INSERT INTO rows VALUES ('archive', '7', '{}')"  # by a newer master
        )
    assert replica.stamp() == stamp
    assert replica.read(None, 1000).rows == before
    assert replica.archived() == ((7, 7),)
    replica.close()


def test_the_number_of_an_archived_job_counts_as_seen(tmp_path: Path) -> None:
    replica = ReplicaFile(tmp_path / "state.sqlite")
    replica.append((next_commit(Stamp(), Epoch(1), (put("archive", "50", {}),)),))
    replica.fill_archive((row(("archive", "60"), b"{}"),))
    assert replica.newest_job() == 60
    with pytest.raises(InvalidRequest, match="no number of an archived job"):
        replica.fill_archive((row(("archive", "six"), b"{}"),))
    replica.close()


def test_the_numbers_in_the_archive_are_found_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    replica = ReplicaFile(path)
    replica.append((next_commit(Stamp(), Epoch(1), (put("archive", "50", {}),)),))
    replica.close()
    with closing(sqlite3.connect(path)) as db:
        for query, values in (
            (ARCHIVED_IDS, (1, 9)), (COUNT_ARCHIVED, (1, 9)), (NEXT_ARCHIVED, (1,)),
        ):  # fmt: skip
            ((_, _, _, plan),) = db.execute(f"EXPLAIN QUERY PLAN {query}", values)
            assert "USING COVERING INDEX archive_ids" in plan


@given(st.sets(st.integers(1, 60)), st.integers(1, 9))
def test_runs_of_numbers_in_the_archive_are_found_across_blocks(
    numbers: set[int], block: int
) -> None:
    with closing(sqlite3.connect(":memory:")) as db, patch(SPAN_BLOCK, block):
        for statement in ARCHIVE_TABLES:
            db.execute(statement)
        db.executemany("INSERT INTO archive VALUES (?, '{}')", [(n,) for n in numbers])
        firsts = [n for n in sorted(numbers) if n - 1 not in numbers]
        lasts = [n for n in sorted(numbers) if n + 1 not in numbers]
        assert archived_spans(db) == tuple(zip(firsts, lasts, strict=True))
