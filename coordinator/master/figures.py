"""What a master tells of itself and of its cluster in figures, to whoever asks now and then."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from math import inf

from msgspec.structs import replace

from common.errors import NoCapacity
from common.figures import Figures, Outlook
from common.model.secret import AUTHORITY_CERTIFICATE
from common.noderpc.facts import NodeFacts
from common.tls.certificate import read_pem
from coordinator.locks.manager import LockManager
from coordinator.nodes.reports import Reports
from coordinator.operations.placement.look import Look
from coordinator.state.store import Store

log = logging.getLogger(__name__)

AUTHORITY = ""  # among the names of nodes
OLDEST_REPORT_S = 10.0
REST = 100.0  # so many times as long as asking the allocator has taken, it is left alone
LEAST_REST_S = 30.0


class FigureTeller:
    """Counts nothing itself: whoever works does, and is asked here.

    Args:
        store: tells of commits.
        locks: tells who waits.
        reports: of nodes.
        look: looks at the cluster as those do who place instances.
    """

    def __init__(
        self,
        store: Store,
        locks: LockManager,
        reports: Reports,
        look: Callable[[], Awaitable[Look]],
    ) -> None:
        self._store, self._locks, self._reports, self._look = store, locks, reports, look
        self._certificates: dict[str, float] = {}
        self._outlook: Outlook | None = None
        self._looked_s = -inf
        self._wanted = asyncio.Event()

    async def run(self) -> None:
        """Ask nodes and the allocator so seldom that nobody notices, while somebody listens."""
        loop = asyncio.get_running_loop()
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            self._certificates = await self._ask_nodes()
            begun_s = loop.time()
            self._outlook = await self._ask_allocator()
            self._looked_s = loop.time()
            await asyncio.sleep(max(LEAST_REST_S, REST * (self._looked_s - begun_s)))

    async def tell(self) -> Figures:
        """Return all that is known; what nodes and the allocator say may be minutes old."""
        self._wanted.set()
        rows = self._locks.rows()
        age_s = asyncio.get_running_loop().time() - self._looked_s
        return Figures(
            commits=self._store.waits.so_far(),
            is_writable=self._store.writable,
            candidates=self._store.candidates(),
            lock_waits=self._locks.waits,
            lock_waiters=len({owner for row in rows for owner, _ in row.pending}),
            longest_lock_wait_s=self._locks.longest_wait_s,
            locks=Counter(row.name.level.label for row in rows if row.owners),
            certificates=self._certificates,
            outlook=None if self._outlook is None else replace(self._outlook, age_s=age_s),
        )

    async def _ask_nodes(self) -> dict[str, float]:
        state = self._store.state
        nodes = state.config.sorted_nodes()
        told = await self._reports.of(nodes, max_age_s=OLDEST_REPORT_S)
        ends = {
            str(node.name): facts.certificate_end
            for node in nodes
            if isinstance(facts := told.get(node.uuid), NodeFacts) and facts.certificate_end
        }
        if (authority := state.secrets.get(AUTHORITY_CERTIFICATE)) is not None:
            ends[AUTHORITY] = read_pem(authority.value).valid_until
        return ends

    async def _ask_allocator(self) -> Outlook | None:
        from coordinator.operations.placement.outlook import outlook

        try:
            return await asyncio.to_thread(outlook, await self._look())
        except NoCapacity:  # no node answers
            return None
        except Exception:  # nobody shall be without a master for the sake of a figure
            log.exception("what the allocator makes of the cluster could not be worked out")
            return None
