"""The state of the cluster: read it at any time, change it by committing.

Group commit: transactions that arrive while a round is under way share the next one. A round
costs one call and one fsync on each candidate, all at the same time, however many
transactions are in it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable

from common.bell import Bell, first_of
from common.errors import Bug, Conflict, Deposed, GntError, Unreachable
from common.figures import CandidateFigures
from common.model.commit import Change, Commit, next_commit
from common.model.node import Node
from common.names import Epoch, NodeName
from common.noderpc.replica import Replica
from common.timings import Timings
from coordinator.state.replication import Replication, pool_of
from coordinator.state.round import Round, check_size
from coordinator.state.rows import Update, settle
from coordinator.state.state import State

Transaction = Callable[[State], Iterable[Update]] | Iterable[Update]


class Store:
    """The one writer of the cluster's state.

    ``state`` is the newest durable snapshot. ``tip`` goes further by what is under way; its
    stamp is only that of the newest round that was begun.

    Args:
        state: as loaded from the candidates; empty for a new cluster.
        epoch: of this mastership; granted already.
        replica_of: gives the replica of a node.
        recent: the commits that led to ``state``, as many as are known.
        excused: candidates without whom the majority is counted, by the operator's word;
            each only until it answers and has caught up.
        on_deposed: called once, when a node refuses this master's epoch.
    """

    def __init__(
        self,
        state: State,
        epoch: Epoch,
        replica_of: Callable[[Node], Replica],
        *,
        recent: Iterable[Commit] = (),
        excused: Collection[NodeName] = (),
        on_deposed: Callable[[Deposed], None] = lambda _: None,
    ) -> None:
        self.state = state
        self.tip = state
        self._epoch = epoch
        self._on_deposed = on_deposed
        self._replication = Replication(
            state, epoch, replica_of, recent=recent, excused=excused, on_deposed=self._depose
        )
        self._queue: deque[Round] = deque()  # the first one is under way
        self._latest: Round | None = None  # the last of the queue, or the last that was done
        self._arrived = asyncio.Event()
        self._changed = Bell()
        self._stopped: GntError | None = None
        self.waits = Timings()  # of changes until they were durable

    async def run(self) -> None:
        """Store commits until cancelled, or until deposed."""
        try:
            async with asyncio.TaskGroup() as group:
                following = group.create_task(self._replication.run(), name="replication")
                while self._stopped is None:
                    await self._run_round()
                following.cancel()
        finally:
            self._stop(
                Unreachable(
                    "The coordinator stopped before this change was acknowledged; whether it "
                    "was stored is not known."
                )
            )

    async def commit(self, change: Transaction) -> State:
        """Change the state; return the state that holds the change once it is durable.

        Nothing is changed unless everything is. A cancelled caller does not take its change
        back. While the majority of the candidates is lost, this waits.

        Args:
            change: the updates in their order, or a function that makes them from the tip.
                The function is called at once, possibly again if a node has to be copied
                to first; what it raises is raised here.

        Raises:
            Deposed: there is another master; whether the change lasts is unknown.
            Conflict: a name would be given twice, or no master candidate be left.
            InvalidRequest: the change is too large or nested too deeply to be stored.
            NodeFailure, Unreachable: a node cannot become a candidate.
        """
        begun_s = asyncio.get_running_loop().time()
        transaction = change if callable(change) else tuple(change)
        round_ = await self._join(transaction)
        if round_ is None:
            return self.state
        await round_.done.wait()
        if round_.error is not None:
            raise _again(round_.error)
        self.waits.note(asyncio.get_running_loop().time() - begun_s)
        return round_.state

    def candidates(self) -> tuple[CandidateFigures, ...]:
        """Tell how far each candidate is."""
        return self._replication.figures()

    @property
    def writable(self) -> bool:
        """Whether, as far as is known, a majority of the candidates takes commits."""
        return self._replication.writable

    @property
    def obeyed_s(self) -> float | None:
        """Since when, by the loop's clock, nobody else can have become master; None if unknown."""
        return self._replication.obeyed_s

    def check_writable(self) -> None:
        """Refuse while the majority of the candidates is lost.

        Raises:
            Deposed: there is another master.
            Conflict: names the candidates that do not answer, and why.
        """
        self._replication.check_writable()

    @property
    def troubles(self) -> dict[NodeName, GntError]:
        """Why candidates do not store commits just now; empty when all is well."""
        return self._replication.troubles

    async def changed(self, seen: State, *others: Bell) -> State:
        """Return the state as soon as it is another than ``seen``, or one of ``others`` rings.

        Raises:
            Deposed, Unreachable: the store has stopped; nothing will change any more.
        """
        rang = self._changed
        while self.state is seen and rang is self._changed:
            self._check_running()
            rang = await first_of(self._changed, *others)
        return self.state

    async def _join(self, transaction: Transaction) -> Round | None:
        """Add a transaction to the next round; None if there is nothing to wait for."""
        admitted: set[NodeName] = set()
        try:
            while True:
                self._check_running()
                updates = transaction(self.tip) if callable(transaction) else transaction
                settled = [settle(update) for update in updates]
                check_size(change for _, change in settled)
                if not settled:  # what this was decided on has to be durable nevertheless
                    return self._latest
                tip = self.tip.apply(update for update, _ in settled)
                newcomer = self._find_newcomer(tip)
                if newcomer is None:
                    return self._enqueue(tip, [change for _, change in settled])
                admitted.add(newcomer.name)
                await self._replication.admit(newcomer)
        finally:
            for name in admitted - pool_of(self.tip):
                self._replication.dismiss(name)

    def _enqueue(self, tip: State, changes: list[Change]) -> Round:
        if not self._queue or self._queue[-1].closed:
            self._queue.append(Round(tip))
        round_ = self._latest = self._queue[-1]
        round_.add(changes, tip)
        # A change of the pool ends its round, so that every round has one pool before it and
        # one after it that differ by one node.
        round_.closed = round_.closed or pool_of(tip) != pool_of(self.tip)
        self.tip = tip
        self._arrived.set()
        return round_

    def _find_newcomer(self, tip: State) -> Node | None:
        """Return the node that ``tip`` makes a candidate and that has no copy of the state yet.

        Raises:
            Conflict: nobody would be left in the pool.
            Bug: more than one node joins or leaves the pool.
        """
        if tip.config is self.tip.config:
            return None
        before, after = pool_of(self.tip), pool_of(tip)
        if before and not after:
            raise Conflict("The last master candidate cannot be removed: it has the state.")
        if len(before ^ after) > 1:
            raise Bug(  # majorities of pools that differ by more may have no node in common
                "The list of master candidates changes by one node at a time, not from "
                f"{', '.join(sorted(before))} to {', '.join(sorted(after))}."
            )
        for name in after - before:
            if not self._replication.is_ready(name):
                return tip.config.node(name)
        return None

    async def _run_round(self) -> None:
        while not self._queue:
            self._arrived.clear()
            await self._arrived.wait()
            if self._stopped is not None:
                return
        round_ = self._queue[0]
        round_.closed = True
        commit = next_commit(self.state.stamp, self._epoch, tuple(round_.changes.values()))
        round_.state = round_.state.stamped(commit.stamp)
        if len(self._queue) == 1:
            self.tip = round_.state
        try:
            await self._replication.store(commit, round_.state)
        except Deposed as error:
            self._stop(error)
            return
        self.state = round_.state
        self._queue.popleft()
        round_.done.set()
        self._changed.ring()

    def _depose(self, error: Deposed) -> None:
        self._stop(error)
        self._on_deposed(error)

    def _stop(self, error: GntError) -> None:
        """Fail all transactions that are not acknowledged, and everything later."""
        if self._stopped is not None:
            return
        self._stopped = error
        self._arrived.set()
        for round_ in self._queue:
            round_.error = error
            round_.done.set()
        self._changed.ring()

    def _check_running(self) -> None:
        if self._stopped is not None:
            raise _again(self._stopped)


def _again(error: GntError) -> GntError:
    """Return a copy to raise: one object raised in many tasks would pile up tracebacks."""
    return type(error)(error.message, **error.detail)
