"""Stores commits on the master candidates, and tells when enough of them have one.

Each candidate has a follower of its own with its own pace, so a slow or dead one delays
nobody once a majority has stored a commit. As in Raft, what counts is only that: the others
catch up later, with the commits they miss or with a whole copy.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable

from common.errors import Conflict, Deposed, GntError
from common.figures import CandidateFigures
from common.model.commit import Commit
from common.model.node import Node
from common.names import Epoch, NodeName
from common.noderpc.replica import Replica
from coordinator.quorum.majority import is_durable, needed
from coordinator.state.follower import Follower
from coordinator.state.levelling import Levelling
from coordinator.state.ring import Ring
from coordinator.state.state import State

Pool = frozenset[NodeName]
PATIENCE = 3  # failed attempts before a node is not admitted to the pool


def pool_of(state: State) -> Pool:
    """Return the names of the master candidates."""
    return state.config.candidate_names


class Replication:
    """The followers of one master.

    Args:
        state: what is stored on the candidates already, as far as anyone knows.
        epoch: of this mastership.
        replica_of: gives the replica of a node.
        recent: the commits that led to ``state``, as many as are known.
        excused: candidates without whom the majority is counted, by the operator's word;
            each only until it has caught up.
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
        on_deposed: Callable[[Deposed], None],
    ) -> None:
        self.epoch = epoch
        self.newest = state
        self.ring = Ring(state.stamp, recent)
        self.pool = pool_of(state)  # of the newest commit that is durable
        self.deposed: Deposed | None = None
        self._replica_of = replica_of
        self._excused = set(excused)
        self._on_deposed = on_deposed
        self._followers: dict[NodeName, Follower] = {}
        self._tasks: dict[NodeName, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._progress = asyncio.Event()
        for node in state.config.candidates():
            self._follow(node)

    async def run(self) -> None:
        """Follow until cancelled."""
        async with asyncio.TaskGroup() as self._group:
            for follower in self._followers.values():
                self._start(follower)
            await asyncio.Future()

    async def store(self, commit: Commit, state: State) -> None:
        """Return when ``commit``, which leads to ``state``, is durable.

        If the commit changes the pool, a majority of the pool before and one of the pool
        after have it then: whichever of the two a later master knows, it finds the commit.

        Raises:
            Deposed: there is another master; whether the commit lasts is unknown.
        """
        after = pool_of(state)
        self.ring.add(commit)
        self.newest = state
        for node in state.config.candidates():
            self._follow(node).node = node  # its address may be new
        for follower in self._followers.values():
            follower.wake()
        while not self._is_durable(commit, after):
            await self._wait()
        self.pool = after
        for name in self._followers.keys() - after:
            self._drop(name)

    def is_ready(self, node: NodeName) -> bool:
        """Tell whether ``node`` has a replica that follows."""
        return node in self._followers and self._followers[node].stored is not None

    async def admit(self, node: Node) -> None:
        """Bring a future candidate up to date, so that it can take part from its first commit.

        Raises:
            GntError: why it failed, after some attempts.
        """
        while not self.is_ready(node.name):
            follower = self._follow(node)
            if follower.trouble is not None and follower.failures >= PATIENCE:
                raise type(follower.trouble)(
                    f"Node {node.name} cannot become a master candidate, for the state could "
                    f"not be copied to it. {follower.trouble.message}",
                    **follower.trouble.detail,
                )
            await self._wait()

    def dismiss(self, node: NodeName) -> None:
        """Stop following ``node``, unless it is or becomes a candidate."""
        if node not in self.pool | pool_of(self.newest) and node in self._followers:
            self._drop(node)

    @property
    def troubles(self) -> dict[NodeName, GntError]:
        """Why followers do not get on just now, by name."""
        return {
            name: follower.trouble
            for name, follower in sorted(self._followers.items())
            if follower.trouble is not None
        }

    def figures(self) -> tuple[CandidateFigures, ...]:
        """Tell how far each candidate is, by name."""
        newest, now_s = self.ring.newest, asyncio.get_running_loop().time()
        return tuple(each.figures(newest, now_s) for _, each in sorted(self._followers.items()))

    @property
    def obeyed_s(self) -> float | None:
        """Since when, by the loop's clock, nobody else can have become master; None if unknown.

        A majority of the candidates has carried out an order of this epoch then or later.
        """
        pool = self.pool - self._excused
        followers = [each for name, each in self._followers.items() if name in pool]
        times = sorted((f.obeyed_s for f in followers if f.obeyed_s is not None), reverse=True)
        enough = needed(len(pool))
        return times[enough - 1] if len(times) >= enough else None

    @property
    def writable(self) -> bool:
        """Whether, as far as is known, a majority of the candidates takes commits."""
        answering = [f.node.name for f in self._followers.values() if f.trouble is None]
        pool = self.pool - self._excused
        return self.deposed is None and (not pool or is_durable(answering, pool))

    def check_writable(self) -> None:
        """Refuse while there is no majority.

        Raises:
            Deposed: there is another master.
            Conflict: names the candidates that do not answer, and why.
        """
        if self.deposed is not None:
            raise Deposed(self.deposed.message, **self.deposed.detail)
        if self.writable:
            return
        pool = self.pool - self._excused
        silent = {name: error for name, error in self.troubles.items() if name in pool}
        raise Conflict(
            f"The cluster is read-only: a change has to be stored on {needed(len(pool))} of "
            f"{len(pool)} master candidates, and {len(silent)} of them fail. "
            + " ".join(f"{name}: {error.message}" for name, error in silent.items()),
            nodes=list(silent),
        )

    def levelling(self, follower: Follower) -> Levelling | None:
        """Return what levels a follower's archive with the master's; None while there is no master.

        Who the master is follows from the state once this mastership has changed it.
        """
        if self.newest.stamp.epoch != self.epoch or self.newest.config.is_empty:
            return None
        master = self.newest.config.master()
        if master.name == follower.node.name:
            return None
        return Levelling(self._replica_of(master), self._replica_of(follower.node))

    def progressed(self, follower: Follower) -> None:
        if follower.stored == self.ring.newest:
            self._excused.discard(follower.node.name)
        self._progress.set()

    def depose(self, error: Deposed) -> None:
        if self.deposed is None:
            self.deposed = error
            self._progress.set()
            self._on_deposed(error)

    def _is_durable(self, commit: Commit, after: Pool) -> bool:
        stored = [
            follower.node.name
            for follower in self._followers.values()
            if follower.stored is not None and follower.stored.serial >= commit.serial
        ]
        pools = [pool - self._excused for pool in (self.pool, after) if pool]
        return is_durable(stored, *pools)

    async def _wait(self) -> None:
        """Wait until a follower got anywhere.

        Raises:
            Deposed: there is another master.
        """
        if self.deposed is None:
            self._progress.clear()
            await self._progress.wait()
        if self.deposed is not None:
            raise Deposed(self.deposed.message, **self.deposed.detail)

    def _follow(self, node: Node) -> Follower:
        if node.name not in self._followers:
            follower = self._followers[node.name] = Follower(node, self, self._replica_of)
            self._start(follower)
        return self._followers[node.name]

    def _start(self, follower: Follower) -> None:
        if self._group is not None:  # else ``run`` will
            name = follower.node.name
            task = self._group.create_task(follower.run(), name=f"replica of {name}")
            self._tasks[name] = task

    def _drop(self, name: NodeName) -> None:
        self.ring.let_go(self._followers.pop(name))
        if name in self._tasks:
            self._tasks.pop(name).cancel()
