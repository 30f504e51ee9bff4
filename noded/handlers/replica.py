"""Serves the copy of the cluster's state that a master candidate keeps."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from common.model.commit import Commit
from common.model.stamp import Stamp
from common.names import JobId, Serial
from common.noderpc.replica import ArchivePage, Page, Replica, Row
from noded.replica.store import ReplicaFile
from noded.system.threads import in_thread_of

T = TypeVar("T")


class ReplicaHandlers(Replica):
    """The replica at ``path``, in a thread of its own: the loop never waits for the disk.

    One thread, so calls are carried out one after the other in the order they came.
    """

    def __init__(self, path: Path) -> None:
        self._file = ReplicaFile(path)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="replica")

    async def append(self, *, commits: tuple[Commit, ...]) -> Stamp:
        return await self._run(partial(self._file.append, commits))

    async def stamp(self) -> Stamp:
        return await self._run(self._file.stamp)

    async def commits_after(self, *, serial: Serial) -> tuple[Commit, ...]:
        return await self._run(partial(self._file.commits_after, serial))

    async def read(self, *, after: tuple[str, str] | None, limit: int) -> Page:
        return await self._run(partial(self._file.read, after, limit))

    async def restore(
        self, *, copy: str, rows: tuple[Row, ...], first: bool, becomes: Stamp | None
    ) -> None:
        await self._run(partial(self._file.restore, copy, rows, first=first, becomes=becomes))

    async def archived(self) -> tuple[tuple[JobId, JobId], ...]:
        return await self._run(self._file.archived)

    async def read_archive(
        self, *, first: JobId, last: JobId, newest_first: bool, limit: int
    ) -> ArchivePage:
        return await self._run(
            partial(self._file.read_archive, first, last, newest_first=newest_first, limit=limit)
        )

    async def fill_archive(self, *, rows: tuple[Row, ...]) -> None:
        await self._run(partial(self._file.fill_archive, rows))

    async def erase(self) -> None:
        await self._run(self._file.erase)

    async def for_ballot(self) -> tuple[Stamp | None, JobId | None]:
        """Return the stamp and the highest job id; None for both where there is no state.

        Raises:
            NodeFailure: the file is damaged or cannot be read.
        """
        stamp, newest_job = await self._run(self._look)
        return (stamp, newest_job) if stamp.serial else (None, None)

    async def close(self) -> None:
        """Close the file, after the calls that are under way."""
        await self._run(self._file.close)
        self._thread.shutdown(wait=False)

    def _look(self) -> tuple[Stamp, JobId]:
        return self._file.stamp(), self._file.newest_job()

    async def _run(self, work: Callable[[], T]) -> T:
        # A write cannot be taken back. The epoch fence has to see a cancelled call end after it, or
        # a commit of the old master could land under the new one.
        return await in_thread_of(self._thread, work)
