"""Brings the archives of two replicas to the same, a page at a time, when there is time.

Commits put jobs into the archive of every candidate. One that got a whole copy of the state,
because it is new or fell far behind, has missed some: whole copies leave the archive out, since it
may be a thousand times as large as the state and nothing depends on it. What either of the two has
and the other has not is therefore carried over in the background. A job that was deleted meanwhile
may come back that way; it is old, and deleted once more with the next ones.
"""

from collections import deque
from collections.abc import Iterable, Iterator

from common.names import JobId
from common.noderpc.replica import Replica

PAGE_JOBS = 200

Span = tuple[JobId, JobId]  # first and last of a run of numbers


class Levelling:
    """The levelling of two replicas; ``step`` until ``is_done``."""

    def __init__(self, mine: Replica, theirs: Replica) -> None:
        self.is_done = False
        self._mine, self._theirs = mine, theirs
        self._todo: deque[tuple[Replica, Replica, Span]] | None = None

    async def step(self) -> None:
        """Compare, or carry one page over.

        Raises:
            GntError: one of the two cannot do it now; a later step tries again.
        """
        if self._todo is None:
            mine, theirs = await self._mine.archived(), await self._theirs.archived()
            self._todo = deque()
            self._todo += ((self._mine, self._theirs, span) for span in missing(mine, theirs))
            self._todo += ((self._theirs, self._mine, span) for span in missing(theirs, mine))
        elif self._todo:
            source, target, (first, last) = self._todo[0]
            page = await source.read_archive(
                first=first, last=last, newest_first=False, limit=PAGE_JOBS
            )
            if page.rows:
                await target.fill_archive(rows=page.rows)
            self._todo.popleft()
            if page.more:
                rest = JobId(int(page.rows[-1].id) + 1), last
                self._todo.appendleft((source, target, rest))
        self.is_done = not self._todo


def missing(has: Iterable[Span], lacks: Iterable[Span]) -> Iterator[Span]:
    """Yield the numbers that are in the one and not in the other; both in rising order."""
    others = deque(lacks)
    for first, last in has:
        begin = first
        while others and others[0][0] <= last:
            low, high = others[0]
            if begin < low:
                yield begin, JobId(low - 1)
            begin = max(begin, JobId(high + 1))
            if high >= last:
                break  # the next run may lie in this one, too
            others.popleft()
        if begin <= last:
            yield begin, last
