"""The locks of the cluster; they live in the coordinator's event loop, and end with it.

What is locked may have changed while a job waited: it looks again at what it was to lock, and
asks anew if that is no longer the same. That also serves for objects that were removed in the
meantime: the job finds out when it checks its arguments.
"""

import asyncio
import contextlib

from common.errors import Conflict
from common.timings import Distribution, Timings
from coordinator.locks.names import LockName, Owner, Wanted
from coordinator.locks.report import LockRow, explain, lock_rows
from coordinator.locks.table import LockTable


class LocksBusy(Conflict):
    """The locks did not come free in time; ``reasons`` says who has them."""

    code = "conflict.locks-busy"


class LockManager:
    """Grants locks to jobs; see ``LockTable`` for who gets them when."""

    def __init__(self) -> None:
        self._table = LockTable(on_grant=self._wake)
        self._waiting: dict[Owner, asyncio.Future[None]] = {}
        self._since_s: dict[Owner, float] = {}  # of those that wait
        self._waits = Timings()

    async def acquire(
        self, owner: Owner, wanted: Wanted, *, timeout: float | None = None, priority: int = 0
    ) -> None:
        """Wait until everything wanted can be had at once, and take it.

        A wait that is cancelled, or ends in any other way, leaves nothing behind.

        Args:
            owner: as operators know it, "job 12"; it must not hold or wait for locks.
            wanted: all it is going to need.
            timeout: seconds; 0 means now or not at all, None for ever.
            priority: -20, the most important, to 19; it orders those who wait.

        Raises:
            LocksBusy: the time is over.
            Bug: ``owner`` already holds or waits for locks.
        """
        self._table.request(owner, wanted, priority=priority)
        held = False
        try:
            if self._holds(owner):
                self._waits.note(0.0)
            elif timeout is None or timeout > 0:
                await self._granted(owner, timeout)
            held = self._holds(owner)
            if not held:
                raise self._busy(owner, timeout or 0)
        finally:
            if not held:
                self._table.release(owner)

    def release(self, owner: Owner) -> None:
        """Give back all that ``owner`` holds, if anything."""
        if self._holds(owner):
            self._table.release(owner)

    def change_priority(self, owner: Owner, priority: int) -> None:
        """Change the priority of ``owner`` while it waits; else it does nothing."""
        if self._table.waiter(owner):
            self._table.change_priority(owner, priority)

    def rows(self) -> tuple[LockRow, ...]:
        """List the locks that are held or waited for."""
        return lock_rows(self._table)

    def obstacles(self, owner: Owner) -> list[tuple[LockName, list[Owner], list[Owner]]]:
        """Return each lock that ``owner`` waits for, who holds it, and who is to get it before."""
        waiter = self._table.waiter(owner)
        return [] if waiter is None else list(self._table.obstacles(waiter))

    @property
    def waits(self) -> Distribution:
        """How long those waited who do no more, be it that they got their locks or gave up."""
        return self._waits.so_far()

    @property
    def longest_wait_s(self) -> float:
        """How long somebody waits by now; 0 if nobody does."""
        now_s = asyncio.get_running_loop().time()
        return max((now_s - since_s for since_s in self._since_s.values()), default=0.0)

    def explain(self, owner: Owner) -> tuple[str, ...]:
        """Say what ``owner`` waits for: "job 12 waits for node/alpha, held by job 9"."""
        return explain(self._table, owner)

    def _holds(self, owner: Owner) -> bool:
        return self._table.holding(owner) is not None

    async def _granted(self, owner: Owner, timeout: float | None) -> None:
        """Return when ``owner`` has its locks, or when the time is over."""
        loop = asyncio.get_running_loop()
        granted = self._waiting[owner] = loop.create_future()
        self._since_s[owner] = loop.time()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await granted
        finally:
            del self._waiting[owner]
            self._waits.note(loop.time() - self._since_s.pop(owner))

    def _wake(self, owner: Owner) -> None:
        granted = self._waiting[owner]
        if not granted.done():  # else its time is over, or it is being cancelled
            granted.set_result(None)

    def _busy(self, owner: Owner, timeout: float) -> LocksBusy:
        reasons = self.explain(owner)
        return LocksBusy(
            f"{owner} could not get its locks within {timeout:g} seconds: {'; '.join(reasons)}.",
            reasons=list(reasons),
        )
