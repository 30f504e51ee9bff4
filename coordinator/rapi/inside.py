"""What only the coordinator knows of itself: asked for now and then, whoever wants to know."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress

from common.errors import GntError
from common.exposition import Family, Kind, single
from common.exposition import Figures as Told
from common.figures import Figures, Outlook
from coordinator.rapi.luxi import Luxi

EVERY_S = 10.0

_NODE, _GROUP = ("node",), ("group",)
# fmt: off
_COMMITS = Family("gantry_cluster_commit_seconds", Kind.HISTOGRAM,
                  "How long changes of the cluster's state took to be on a majority's disks.")
_WRITABLE = Family("gantry_cluster_is_writable", Kind.GAUGE,
                   "Whether a majority of the master candidates stores changes.")
_STORES = Family("gantry_cluster_candidate_stores", Kind.GAUGE,
                 "Whether a master candidate stored changes when it was to, the last time.", _NODE)
_BEHIND = Family("gantry_cluster_candidate_behind_commits", Kind.GAUGE,
                 "Commits that a master candidate has not got yet.", _NODE)
_BEHIND_S = Family("gantry_cluster_candidate_behind_seconds", Kind.GAUGE,
                   "How long a master candidate has lacked any commit; 0 if it has all.", _NODE)
_WAITS = Family("gantry_cluster_lock_wait_seconds", Kind.HISTOGRAM,
                "How long jobs waited for their locks, of those that wait no more.")
_WAITERS = Family("gantry_cluster_lock_waiters", Kind.GAUGE, "Jobs that wait for locks now.")
_LONGEST = Family("gantry_cluster_longest_lock_wait_seconds", Kind.GAUGE,
                  "How long the first of those has waited; 0 if there are none.")
_LOCKS = Family("gantry_cluster_locks", Kind.GAUGE, "Locks that jobs hold, by what they are on.",
                ("level",))
_ENDS = Family("gantry_cluster_certificate_end_seconds", Kind.GAUGE,
               "When the certificate of a node ends, in seconds since 1970; that of the cluster's "
               "authority has no node.", _NODE)
_SCORE = Family("gantry_cluster_score", Kind.GAUGE,
                "How unevenly a group of nodes is used, as hbal has it; 0 is best.", _GROUP)
_UNSAFE = Family("gantry_cluster_unsafe_nodes", Kind.GAUGE,
                 "Nodes that lack the memory for what would fail over to them (N+1).", _GROUP)
_CAPACITY = Family("gantry_cluster_capacity_instances", Kind.GAUGE,
                   "Instances of the standard size that would fit besides, counted up to 200.",
                   ("group", "disk_template"))
_OUTLOOK = Family("gantry_cluster_outlook_age_seconds", Kind.GAUGE,
                  "How long ago scores, unsafe nodes and capacity were worked out.")
# fmt: on


class Inside:
    """Keeps the newest figures of the coordinator, as long as it tells any."""

    def __init__(self, luxi: Luxi) -> None:
        self._luxi = luxi
        self.figures: Figures | None = None

    async def run(self) -> None:
        """Ask every few seconds until cancelled; a coordinator that is away has no figures."""
        while True:
            self.figures = None
            with suppress(GntError):
                while True:
                    self.figures = await self._luxi.call_for(Figures, "Figures")
                    await asyncio.sleep(EVERY_S)
            await asyncio.sleep(EVERY_S)


def inside_figures(told: Figures) -> Iterator[Told]:
    """Yield all that the coordinator told."""
    yield single(_COMMITS, told.commits)
    yield single(_WRITABLE, told.is_writable)
    yield _STORES, {(each.name,): each.answers for each in told.candidates}
    yield _BEHIND, {(c.name,): c.behind for c in told.candidates if c.behind is not None}
    yield _BEHIND_S, {(c.name,): c.behind_s for c in told.candidates if c.behind_s is not None}
    yield single(_WAITS, told.lock_waits)
    yield single(_WAITERS, told.lock_waiters)
    yield single(_LONGEST, told.longest_lock_wait_s)
    yield _LOCKS, {(level,): count for level, count in told.locks.items()}
    yield _ENDS, {(node,): end for node, end in told.certificates.items()}
    if told.outlook is not None:
        yield from _of_outlook(told.outlook)


def _of_outlook(told: Outlook) -> Iterator[Told]:
    yield _SCORE, {(each.name,): each.score for each in told.groups}
    yield _UNSAFE, {(each.name,): each.unsafe for each in told.groups}
    known = (each for each in told.groups if each.capacity is not None)
    yield _CAPACITY, {(each.name, told.template): each.capacity or 0 for each in known}
    yield single(_OUTLOOK, told.age_s)
