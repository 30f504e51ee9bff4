"""A feed of rows: whoever keeps a copy of what lists show is told what has changed, and no more.

A subscriber names the fields it wants of each kind, and asks again and again what is new; the
answer comes when something is. What it has not fetched yet is not kept for it: it gets the newest.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

from msgspec import Raw

from common.errors import InvalidRequest, NotFound
from common.messages import from_builtins, to_json
from common.names import NodeId
from common.tasks import Background
from coordinator.disks.kinds import pools_of
from coordinator.queries.changes import CLUSTER, JOB, KINDS, Moment, changed_rows, ended_on
from coordinator.queries.cluster_info import cluster_info
from coordinator.queries.field import Field, Missing, Needs
from coordinator.queries.live import Live
from coordinator.queries.source import Source
from coordinator.queries.subject import find_subject
from coordinator.state.state import State
from coordinator.state.store import Store

LOOK_S = 10.0  # between looks at all nodes, while somebody listens
PATIENCE_S = 2.0  # of who hears that a job has ended, for what it did to be seen
GAP_S = 0.1  # between answers, however much goes on
SHARE = 0.05  # of the coordinator's time that a subscriber may take
LONGEST_REST_S = 1.0
TICK_S = 0.2  # until it is seen what a running job says that is not stored yet
LONGEST_WAIT_S = 60.0
LEFT_S = 3 * LONGEST_WAIT_S  # a subscriber that has not asked for so long has left
MOST = 16  # subscribers
AT_ONCE, TURN = 250, 10  # rows of an answer, and after how many others get their turn
ORDER = (CLUSTER, *(kind.name for kind in KINDS), JOB)  # what a job did comes before its end


class Target(NamedTuple):
    """A state to be told, with what nodes say until ``until_s``."""

    stored: State
    state: State
    until_s: float


class _Subscription:
    def __init__(self, fields: Mapping[str, Sequence[Field[Any]]]) -> None:
        self.fields = fields
        self.moment = Moment()  # up to which it is told, when nothing is due
        self.due: deque[tuple[str, Any]] = deque()
        self.told: dict[tuple[str, Any], int] = {}  # sums of rows
        self.stored: State | None = None  # what was stored then
        self.target: Target | None = None  # what is told next
        self.look: asyncio.Task[None] | None = None  # at what jobs did that have ended since
        self.answered_s = asyncio.get_running_loop().time()
        self.rests_s = 0.0  # until it is looked for news again
        self.is_busy = False


class Feed:
    """Tells subscribers what has changed. ``run`` looks at the nodes while there are any."""

    def __init__(self, store: Store, source: Callable[[], Source]) -> None:
        self._store, self._source = store, source
        self._subscriptions: OrderedDict[int, _Subscription] = OrderedDict()
        self._last = 0
        self._live = Live()
        self._asked_s: dict[NodeId, float] = {}  # when each node was asked for what is known
        self._looked_s = -inf  # when the last look at all nodes began
        self._background = Background()
        self._wanted = asyncio.Event()
        self._seen = asyncio.Event()  # all nodes have been looked at

    async def run(self) -> None:
        """Look at all nodes every few seconds, while there are subscribers."""
        try:
            while True:
                await self._wanted.wait()
                while self._subscriptions:
                    begun_s = asyncio.get_running_loop().time()
                    await self._look(self._source().state.config.nodes)
                    self._looked_s = begun_s
                    self._seen.set()
                    await asyncio.sleep(LOOK_S)
                    self._forget_who_left()
                self._wanted.clear()
                self._seen.clear()
        finally:
            await self._background.close()

    def subscribe(self, fields: Any) -> int:
        """Begin a subscription and return its number; everything there is counts as changed.

        Raises:
            InvalidRequest: no such kind or field, or one that takes more than a look at nodes.
        """
        self._last += 1
        self._subscriptions[self._last] = _Subscription(_columns(fields))
        if len(self._subscriptions) > MOST:
            self._subscriptions.popitem(last=False)
        self._wanted.set()
        return self._last

    async def next(self, number: int, timeout_s: float) -> dict[str, Any]:
        """Return what is new to a subscriber, as soon as there is something.

        Returns:
            ``rows``: a kind, a key and the values by field, or None for one that is gone; whether
            there are ``more``; and the ``age`` in seconds of what nodes told.

        Raises:
            NotFound: there is no such subscription; begin another one.
            InvalidRequest: somebody asks already.
        """
        if (mine := self._subscriptions.get(number)) is None:
            raise NotFound(f"There is no subscription {number}.", subscription=number)
        if mine.is_busy:
            raise InvalidRequest(f"Subscription {number} is asked for already.")
        self._subscriptions.move_to_end(number)
        mine.is_busy = True
        try:
            async with asyncio.timeout(min(timeout_s, LONGEST_WAIT_S)):
                while not mine.due:
                    await self._find_news(mine)
        except TimeoutError:
            pass
        finally:
            mine.is_busy = False
            mine.answered_s = asyncio.get_running_loop().time()
        begun_s = asyncio.get_running_loop().time()
        rows = await self._rows(mine)
        mine.rests_s += (asyncio.get_running_loop().time() - begun_s) / SHARE
        age_s = asyncio.get_running_loop().time() - self._looked_s
        age = None if age_s == inf else round(age_s, 3)
        return {"rows": rows, "more": bool(mine.due), "age": age}

    async def _find_news(self, mine: _Subscription) -> None:
        """Wait a little for something that has changed, and put it down as due.

        This may be cut off at any time, and goes on where it was when it is called again.
        """
        loop = asyncio.get_running_loop()
        if mine.target is None:
            await self._wait_for_change(mine)
            mine.target = Target(self._store.state, self._source().state, loop.time() + PATIENCE_S)
            begun_s = loop.time()
            if mine.stored and (nodes := ended_on(mine.moment, mine.target.state)):
                mine.look = self._background.start(self._look(nodes), name="look after a job")
            mine.rests_s = (loop.time() - begun_s) / SHARE
        with suppress(TimeoutError):
            async with asyncio.timeout_at(mine.target.until_s):
                await self._seen.wait()
                if mine.look is not None:
                    await asyncio.wait({mine.look})
        begun_s = loop.time()
        now = mine.moment.next(mine.target.state, self._live)
        found = changed_rows(mine.moment, now)
        mine.stored, mine.moment = mine.target.stored, now
        mine.target = mine.look = None
        mine.due.extend(
            (kind, key) for kind in ORDER if kind in mine.fields for key in sorted(found[kind])
        )
        mine.rests_s += (loop.time() - begun_s) / SHARE

    async def _wait_for_change(self, mine: _Subscription) -> None:
        if mine.stored is None:
            return
        rests_s = min(max(GAP_S, mine.rests_s), LONGEST_REST_S)
        await asyncio.sleep(mine.answered_s + rests_s - asyncio.get_running_loop().time())
        if mine.moment.live is self._live:
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_S):
                    await self._store.changed(mine.stored)

    async def _look(self, nodes: Container[NodeId]) -> None:
        """Ask some nodes what they have; what is younger already stays."""
        source, begun_s = self._source(), asyncio.get_running_loop().time()
        config = source.state.config
        asked = [n for n in config.sorted_nodes() if n.uuid in nodes and not n.offline]
        hosts = [node for node in asked if node.vm_capable]
        async with asyncio.TaskGroup() as group:
            guests = group.create_task(source.asker.guests(hosts))
            facts = group.create_task(source.asker.facts(asked, storage=pools_of(config)))
        news = {n.uuid for n in asked if self._asked_s.get(n.uuid, -inf) <= begun_s}
        self._asked_s = {
            node: begun_s if node in news else told_s
            for node, told_s in {**dict.fromkeys(news, begun_s), **self._asked_s}.items()
            if node in config.nodes
        }
        self._live = self._live.and_of(
            {node: told for node, told in guests.result().items() if node in news},
            {node: told for node, told in facts.result().items() if node in news},
        )

    def _forget_who_left(self) -> None:
        now_s = asyncio.get_running_loop().time()
        for number, each in tuple(self._subscriptions.items()):
            if now_s - each.answered_s > LEFT_S and not each.is_busy:
                del self._subscriptions[number]

    async def _rows(self, mine: _Subscription) -> list[tuple[str, Any, Any]]:
        """Take some of what is due."""
        source = replace(self._source(), state=mine.moment.state)
        rows: list[tuple[str, Any, Any]] = []
        for number in range(min(AT_ONCE, len(mine.due))):
            if number % TURN == 0:
                await asyncio.sleep(0)
            kind, key = mine.due.popleft()
            row = _row(kind, key, mine.fields[kind], source, mine.moment.live)
            if row is None:
                if mine.told.pop((kind, key), None) is not None:
                    rows.append((kind, key, None))
            elif mine.told.get((kind, key)) != (told := hash(text := to_json(row))):
                mine.told[kind, key] = told
                rows.append((kind, key, Raw(text)))
        return rows


def _columns(fields: Any) -> dict[str, tuple[Field[Any], ...]]:
    columns = {}
    asked = from_builtins(fields, dict[str, tuple[str, ...]], what="the subscription")
    for kind, names in asked.items():
        if kind not in ORDER:
            raise InvalidRequest(f"Nobody can subscribe to “{kind}”; there are {', '.join(ORDER)}.")
        known = find_subject(kind).fields
        for name in names:
            if name not in known or known[name].needs in (Needs.MIRRORS, Needs.THIN):
                raise InvalidRequest(f"A subscription to {kind}s cannot have the field “{name}”.")
        columns[kind] = tuple(known[name] for name in names)
    return columns


def _row(
    kind: str, key: Any, columns: Sequence[Field[Any]], source: Source, live: Live
) -> dict[str, Any] | None:
    """Return the values of a row; None if there is no such thing."""
    if kind == CLUSTER:
        return cluster_info(source.state.config)
    if kind == JOB and ((job := source.state.jobs.get(key)) is None or job.archived):
        return None
    named = find_subject(kind).named
    assert named is not None
    try:
        (row,) = named(source, live, [key])
    except NotFound:
        return None
    values = {column.name: column.get(row) for column in columns}
    return {k: None if isinstance(value, Missing) else value for k, value in values.items()}
