"""The copy of the cluster's state on a master candidate."""

from abc import abstractmethod

import msgspec

from common.errors import Conflict
from common.messages import Order, Report
from common.model.commit import Commit
from common.model.stamp import Stamp
from common.names import JobId, Serial
from common.rpc.declare import NodeService, rpc

PAGES = 16 << 20  # bytes of rows or commits in one message; only candidates have them


class Behind(Conflict):
    """The replica misses commits before the ones sent; ``serial`` is what it has."""

    code = "conflict.behind"


class Diverged(Conflict):
    """The replica holds another history; it needs a whole copy."""

    code = "conflict.diverged"


class Row(Order):
    kind: str
    id: str
    body: msgspec.Raw


class Page(Report):
    """Some rows in the order of ``(kind, id)``; ``more`` tells whether any follow."""

    stamp: Stamp
    rows: tuple[Row, ...]
    more: bool


class ArchivePage(Report):
    """Some archived jobs in the order asked for; ``more`` tells whether any follow."""

    stamp: Stamp
    rows: tuple[Row, ...]
    more: bool


class Replica(NodeService, prefix="replica"):
    """Durable storage of commits; one SQLite file.

    Beside the rows there is the archive: what commits put there is not part of what ``read``
    returns and ``restore`` replaces, so that loading and copying the state cost nothing for it.
    """

    @rpc(timeout=15, safe_to_repeat=True, largest_question=PAGES)
    @abstractmethod
    async def append(self, *, commits: tuple[Commit, ...]) -> Stamp:
        """Store commits, all or none, on disk when this returns.

        Commits that are already there are skipped.

        Raises:
            Behind: commits in between are missing.
            Diverged: the digest does not fit.
            NodeFailure: the disk is full or broken.
        """

    @rpc(timeout=5, safe_to_repeat=True, fenced=False)
    @abstractmethod
    async def stamp(self) -> Stamp:
        """Return how far this replica has come."""

    @rpc(timeout=15, safe_to_repeat=True, fenced=False, largest_answer=PAGES)
    @abstractmethod
    async def commits_after(self, *, serial: Serial) -> tuple[Commit, ...]:
        """Return the kept commits above ``serial``, oldest first, at most 1,000.

        Raises:
            Behind: the one right after ``serial`` is not kept any more.
        """

    @rpc(timeout=30, safe_to_repeat=True, fenced=False, largest_answer=PAGES)
    @abstractmethod
    async def read(self, *, after: tuple[str, str] | None, limit: int) -> Page:
        """Return up to ``limit`` rows that sort after ``(kind, id)``."""

    @rpc(timeout=30, safe_to_repeat=True, largest_question=PAGES)
    @abstractmethod
    async def restore(
        self, *, copy: str, rows: tuple[Row, ...], first: bool, becomes: Stamp | None
    ) -> None:
        """Receive one part of a whole copy; with ``becomes`` it is the last, and takes effect.

        Args:
            copy: names this transfer; ``first`` starts it anew.
            rows: any number; a row sent twice is stored once.
            first: whether this is the first part.
            becomes: the stamp of the complete copy, with the last part only.

        Raises:
            Conflict: a part came before the first, or of a transfer that was given up.
        """

    @rpc(timeout=30, safe_to_repeat=True, fenced=False, largest_answer=PAGES)
    @abstractmethod
    async def archived(self) -> tuple[tuple[JobId, JobId], ...]:
        """Return which jobs are in the archive: first and last of each run of numbers."""

    @rpc(timeout=30, safe_to_repeat=True, fenced=False, largest_answer=PAGES)
    @abstractmethod
    async def read_archive(
        self, *, first: JobId, last: JobId, newest_first: bool, limit: int
    ) -> ArchivePage:
        """Return archived jobs with numbers in a range: at most ``limit``, or what fits."""

    @rpc(timeout=30, safe_to_repeat=True, largest_question=PAGES)
    @abstractmethod
    async def fill_archive(self, *, rows: tuple[Row, ...]) -> None:
        """Add archived jobs that another replica has; those that are here stay as they are."""

    @rpc(timeout=15, safe_to_repeat=True)
    @abstractmethod
    async def erase(self) -> None:
        """Delete the replica: this node is no candidate any more."""
