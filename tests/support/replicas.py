"""A replica in memory, which is the model of the real one, and histories to store in it."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from common.errors import Conflict, InvalidRequest
from common.messages import to_json
from common.model.commit import ARCHIVE, GONE, Change, Commit, follows, next_commit
from common.model.stamp import Stamp
from common.names import Epoch, JobId, Serial
from common.noderpc.replica import ArchivePage, Behind, Diverged, Page, Replica, Row
from noded.handlers.replica import ReplicaHandlers
from tests.support.clock import simulate

Key = tuple[str, str]
Story = Callable[[Replica], Awaitable[None]]
Tell = Callable[[Story], None]


class MemoryReplica(Replica):
    """Does what the declaration says, in the simplest way."""

    def __init__(self, kept: int = 1000) -> None:
        self.rows: dict[Key, bytes] = {}
        self.archive: dict[int, bytes] = {}
        self.at = Stamp()
        self.commits: dict[int, Commit] = {}
        self._kept = kept
        self._copy: str | None = None
        self._staging: dict[Key, bytes] = {}

    async def append(self, *, commits: tuple[Commit, ...]) -> Stamp:
        rows, archive, at = dict(self.rows), dict(self.archive), self.at
        if commits and commits[0].serial > at.serial + 1:
            raise Behind("Commits in between are missing.", serial=at.serial)
        known = [commit for commit in commits if commit.serial <= at.serial]
        if known and known[-1].digest != self._digest(known[-1].serial):
            raise Diverged("Another history is here.", serial=at.serial)
        new = commits[len(known) :]
        for commit in new:
            if not follows(commit, at):
                raise Diverged("The commit does not follow.", serial=at.serial)
            carry_out(rows, commit)
            carry_out_in_archive(archive, commit)
            at = commit.stamp
        self.rows, self.archive, self.at = rows, archive, at
        self.commits |= {commit.serial: commit for commit in new}
        for serial in list(self.commits)[: -self._kept]:
            del self.commits[serial]
        return self.at

    async def stamp(self) -> Stamp:
        return self.at

    async def commits_after(self, *, serial: Serial) -> tuple[Commit, ...]:
        if serial >= self.at.serial:
            return ()
        if serial + 1 not in self.commits:
            raise Behind("It is not kept any more.")
        return tuple(c for number, c in sorted(self.commits.items()) if number > serial)[:1000]

    async def read(self, *, after: Key | None, limit: int) -> Page:
        if limit < 1:
            raise InvalidRequest("A page has at least one row.")
        following = sorted(key for key in self.rows if after is None or key > after)
        rows = tuple(row(key, self.rows[key]) for key in following[:limit])
        return Page(stamp=self.at, rows=rows, more=len(following) > limit)

    async def restore(
        self, *, copy: str, rows: tuple[Row, ...], first: bool, becomes: Stamp | None
    ) -> None:
        if first:
            self._copy, self._staging = copy, {}
        if copy != self._copy:
            raise Conflict("Out of turn.")
        self._staging |= {(each.kind, each.id): bytes(each.body) for each in rows}
        if becomes is not None:
            self.rows, self.at, self.commits = self._staging, becomes, {}
            self._copy, self._staging = None, {}

    async def archived(self) -> tuple[tuple[JobId, JobId], ...]:
        numbers = sorted(self.archive)
        firsts = [JobId(n) for n in numbers if n - 1 not in self.archive]
        lasts = [JobId(n) for n in numbers if n + 1 not in self.archive]
        return tuple(zip(firsts, lasts, strict=True))

    async def read_archive(
        self, *, first: JobId, last: JobId, newest_first: bool, limit: int
    ) -> ArchivePage:
        found = sorted((n for n in self.archive if first <= n <= last), reverse=newest_first)
        rows = tuple(row((ARCHIVE, str(n)), self.archive[n]) for n in found[:limit])
        return ArchivePage(stamp=self.at, rows=rows, more=len(found) > limit)

    async def fill_archive(self, *, rows: tuple[Row, ...]) -> None:
        self.archive = {int(each.id): bytes(each.body) for each in rows} | self.archive

    async def erase(self) -> None:
        self.rows, self.archive, self.at, self.commits = {}, {}, Stamp(), {}
        self._copy, self._staging = None, {}

    def _digest(self, serial: int) -> str | None:
        if serial == self.at.serial:
            return self.at.digest
        return self.commits[serial].digest if serial in self.commits else None


def carry_out(rows: dict[Key, bytes], commit: Commit) -> None:
    for change in commit.changes:
        if change.kind == ARCHIVE:
            continue
        if change.deletes:
            rows.pop((change.kind, change.id), None)
        else:
            rows[change.kind, change.id] = bytes(change.body)


def carry_out_in_archive(archive: dict[int, bytes], commit: Commit) -> None:
    for change in commit.changes:
        if change.kind != ARCHIVE:
            continue
        if change.deletes:
            for number in [n for n in archive if n <= int(change.id)]:
                del archive[number]
        else:
            archive[int(change.id)] = bytes(change.body)


def row(key: Key, body: bytes) -> Row:
    return Row(kind=key[0], id=key[1], body=msgspec.Raw(body))


def put(kind: str, key: str, value: Any) -> Change:
    return Change(kind=kind, id=key, body=msgspec.Raw(to_json(value)))


def delete(kind: str, key: str) -> Change:
    return Change(kind=kind, id=key, body=GONE)


def history(
    length: int, random: Random, *, after: Stamp | None = None, epoch: int = 1
) -> tuple[Commit, ...]:
    """Make commits that add, alter and delete some dozens of rows."""
    commits: list[Commit] = []
    at = after or Stamp()
    for _ in range(length):
        changes = tuple(_some_change(random) for _ in range(random.randint(1, 5)))
        commits.append(next_commit(at, Epoch(epoch), changes))
        at = commits[-1].stamp
    return tuple(commits)


def _some_change(random: Random) -> Change:
    kind = random.choice(("job", "instance", "node", ARCHIVE))
    key = str(random.randint(1, 12))
    if random.random() < 0.25:
        return delete(kind, key)
    return put(kind, key, {"name": "ü" * random.randint(0, 9), "size": random.random()})


async def all_rows(replica: Replica, limit: int = 5) -> dict[Key, bytes]:
    """Read everything, page by page."""
    rows: dict[Key, bytes] = {}
    after: Key | None = None
    while True:
        page = await replica.read(after=after, limit=limit)
        rows |= {(each.kind, each.id): bytes(each.body) for each in page.rows}
        if not page.more:
            return rows
        after = page.rows[-1].kind, page.rows[-1].id


def telling(kind: str, tmp_path: Path) -> Tell:
    """Return what runs a story on a new replica, in virtual time."""

    async def run(story: Story) -> None:
        if kind == "memory":
            await story(MemoryReplica())
            return
        replica = ReplicaHandlers(tmp_path / "state.sqlite")
        await story(replica)
        await replica.close()

    return lambda story: simulate(run(story))
