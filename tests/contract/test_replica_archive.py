"""What a replica promises of archived jobs, which are beside its rows."""

from pathlib import Path

import pytest

from common.model.commit import ARCHIVE, next_commit
from common.model.stamp import Stamp
from common.names import LARGEST_COUNT, Epoch, JobId
from common.noderpc.replica import Replica
from tests.support.replicas import Tell, all_rows, delete, put, row, telling


@pytest.fixture(params=["memory", "sqlite"])
def tell(request: pytest.FixtureRequest, tmp_path: Path) -> Tell:
    return telling(request.param, tmp_path)


def test_the_archive_is_beside_the_rows(tell: Tell) -> None:
    async def story(replica: Replica) -> None:
        changes = (put("job", "1", {}), put(ARCHIVE, "7", {"job": 7}), put(ARCHIVE, "9", {}))
        first = next_commit(Stamp(), Epoch(1), changes)
        await replica.append(commits=(first,))
        assert await all_rows(replica) == {("job", "1"): b"{}"}
        assert await replica.archived() == ((7, 7), (9, 9))
        assert await _archive(replica) == {7: b'{"job":7}', 9: b"{}"}
        rows = (row(("job", "2"), b"{}"),)
        await replica.restore(copy="a", rows=rows, first=True, becomes=first.stamp)
        assert await replica.archived() == ((7, 7), (9, 9))

    tell(story)


def test_a_deletion_in_the_archive_takes_all_older_ones_along(tell: Tell) -> None:
    async def story(replica: Replica) -> None:
        many = tuple(put(ARCHIVE, str(number), {}) for number in range(1, 30))
        first = next_commit(Stamp(), Epoch(1), many)
        second = next_commit(first.stamp, Epoch(1), (delete(ARCHIVE, "20"),))
        third = next_commit(second.stamp, Epoch(1), (put(ARCHIVE, "5", {}),))
        await replica.append(commits=(first, second, third))
        assert await replica.archived() == ((5, 5), (21, 29))

    tell(story)


def test_the_archive_is_read_in_pages_from_either_end(tell: Tell) -> None:
    async def story(replica: Replica) -> None:
        many = tuple(put(ARCHIVE, str(number), {}) for number in range(1, 30))
        await replica.append(commits=(next_commit(Stamp(), Epoch(1), many),))

        async def read(first: int, last: int, *, newest_first: bool) -> tuple[list[str], bool]:
            page = await replica.read_archive(
                first=JobId(first), last=JobId(last), newest_first=newest_first, limit=3
            )
            return [each.id for each in page.rows], page.more

        assert await read(5, 20, newest_first=False) == (["5", "6", "7"], True)
        assert await read(5, 20, newest_first=True) == (["20", "19", "18"], True)
        assert await read(28, 99, newest_first=False) == (["28", "29"], False)
        assert await read(40, 99, newest_first=False) == ([], False)

    tell(story)


def test_filling_the_archive_changes_nothing_that_is_there(tell: Tell) -> None:
    async def story(replica: Replica) -> None:
        commit = next_commit(Stamp(), Epoch(1), (put(ARCHIVE, "7", {"job": 7}),))
        await replica.append(commits=(commit,))
        await replica.fill_archive(rows=(row((ARCHIVE, "7"), b"{}"), row((ARCHIVE, "8"), b"{}")))
        assert await _archive(replica) == {7: b'{"job":7}', 8: b"{}"}
        assert await replica.stamp() == commit.stamp
        await replica.erase()
        assert await replica.archived() == ()

    tell(story)


async def _archive(replica: Replica) -> dict[int, bytes]:
    page = await replica.read_archive(
        first=JobId(0), last=JobId(LARGEST_COUNT), newest_first=False, limit=1000
    )
    return {int(each.id): bytes(each.body) for each in page.rows}
