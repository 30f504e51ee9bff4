"""A master: everything that runs once this node is confirmed, and nothing about processes.

The daemon wraps it in a socket and signals; a simulation runs several of them in one loop.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from uuid import UUID

from msgspec.structs import replace

from common.errors import Deposed, GntError, InvalidRequest
from common.model.cluster import Override
from common.model.node import Node
from common.names import Epoch, JobId
from common.noderpc.mastership import Mastership
from common.noderpc.replica import Replica
from common.rpc.client import Transport
from coordinator.hooks.watcher import run_watcher_hooks
from coordinator.jobs.context import JobContext, Surroundings
from coordinator.jobs.executor import Executor
from coordinator.jobs.queue import JobQueue
from coordinator.jobs.running import ended
from coordinator.locks.manager import LockManager
from coordinator.master.address import AddressKeeper
from coordinator.master.authority import OwnLine, StateAuthority
from coordinator.master.confd import ConfdPublisher
from coordinator.master.confirm import Confirmed, NotMaster, become_master
from coordinator.master.figures import FigureTeller
from coordinator.master.keys import learn_keys
from coordinator.master.luxi_methods import LuxiMethods
from coordinator.master.publisher import Publisher
from coordinator.master.rest_users import RestUsersPublisher
from coordinator.master.standing import Watchfulness
from coordinator.nodes.calls import Nodes
from coordinator.nodes.sign_of_life import IsAlive, is_alive
from coordinator.operations.placement.look import Look, take_look
from coordinator.operations.placement.program import run_program
from coordinator.operations.placement.questions import Question, look_to_answer
from coordinator.operations.placement.shared import RunProgram, SearchPath
from coordinator.operations.registry import load_all
from coordinator.queries.feed import Feed
from coordinator.queries.source import NodeAsker, Source
from coordinator.quorum.question import NO_EPOCH, Mode, Word
from coordinator.state.archive import Archive
from coordinator.state.loading import load
from coordinator.state.rows import Put
from coordinator.state.state import State
from coordinator.state.store import Store

log = logging.getLogger(__name__)

WATCH_PAUSE_S = 0.5
UNKNOWN_JOBS = 10_000  # at most, that silent nodes may have heard of since they were heard last
BELIEF_S = 60.0  # since most nodes confirmed this master


@dataclass(frozen=True)
class Outside:
    """What a master needs of the world; simulations have their own.

    ``nodes`` calls without an epoch; ``strangers`` reaches nodes of no cluster; ``is_alive`` looks
    for machines whose daemons are silent. Allocator programs are looked for along ``search_path``,
    where None is the built-in one. Sockets at which programs meet jobs are made in ``meetings``.
    """

    nodes: Nodes
    strangers: Callable[[Node, bytes], Transport]
    now: Callable[[], float]
    random: Random
    meetings: Path
    line: OwnLine | None = None  # by which ``nodes`` calls, where that is TLS
    search_path: SearchPath = (None,)
    run_program: RunProgram = run_program
    is_alive: IsAlive = is_alive

    def new_uuid(self) -> str:
        return new_uuid(self.random)


def new_uuid(random: Random) -> str:
    """Make a random UUID (version 4), from a source that simulations can repeat."""
    return str(UUID(int=random.getrandbits(128), version=4))


class Master:
    """One mastership, from confirmation to deposition."""

    def __init__(self, confirmed: Confirmed, me: Node, outside: Outside) -> None:
        """Compose it; nothing runs yet."""
        self.confirmed, self._me, self._outside = confirmed, me, outside
        loop = asyncio.get_running_loop()
        self._doubt: asyncio.Future[Deposed] = loop.create_future()
        self._confirmed_s = loop.time()
        epoch = confirmed.won.epoch
        self._nodes = outside.nodes.with_epoch(epoch)
        state = confirmed.loaded.state
        self.store = Store(
            state,
            epoch,
            lambda node: self._nodes.service(Replica, node),
            recent=confirmed.loaded.recent,
            excused=confirmed.unheard if confirmed.won.overridden else (),
        )
        self.locks = LockManager()
        self._around = Surroundings(
            self.store,
            self._nodes.heeding(self._heed),
            now=outside.now,
            new_uuid=outside.new_uuid,
            authority=lambda now: StateAuthority(now, outside.now, me=me.name, line=outside.line),
            strangers=outside.strangers,
            is_alive=outside.is_alive,
            run_program=outside.run_program,
            search_path=outside.search_path,
            meetings=outside.meetings,
        )
        executor = Executor(
            self.store,
            self.locks,
            lambda job, index: JobContext(self._around, job, index),
            outside.now,
        )
        self.archive = Archive(
            lambda: self._nodes.service(Replica, self._node()), lambda: self.store.state.stamp
        )
        self.queue = JobQueue(self.store, executor, self.archive, outside.now)
        watchfulness = Watchfulness(
            me.name, epoch, self.store, outside.nodes, now=outside.now, doubt=self._be_in_doubt
        )
        self.feed = Feed(self.store, self._source)
        reports = self._around.placing.reports
        self.figures = FigureTeller(self.store, self.locks, reports, self._look)
        self.luxi = LuxiMethods(
            self.store,
            self.queue,
            self._source,
            self._look_to_answer,
            self.feed,
            self.figures,
            lambda: run_watcher_hooks(self.store.state.config, self._nodes),
            outside.now,
            outside.new_uuid,
            watchfulness.check,
        )

    @classmethod
    async def confirm(
        cls,
        me: Node,
        outside: Outside,
        mode: Mode,
        word: Word = Word.NONE,
        *,
        above: Epoch = NO_EPOCH,
    ) -> "Master":
        """Ask the nodes whether ``me`` may be master.

        Raises:
            NotMaster: it may not, and why.
            Unreachable: this node's own noded does not answer.
        """
        load_all()
        try:
            local = await load(outside.nodes.service(Replica, me))
        except InvalidRequest as error:
            raise NotMaster(f"This node does not become master: {error}") from error
        confirmed = await become_master(me.name, local, outside.nodes, mode, word, above=above)
        return cls(confirmed, me, outside)

    async def take_over(self) -> None:
        """Make it durable that this node is the master, and return.

        Raises:
            Deposed: another node was faster.
        """
        storing = asyncio.get_running_loop().create_task(self._store(), name="store")
        try:
            await self.store.commit(self._taken_over)  # is told what ends the store, too
        finally:
            await ended(storing)

    async def run(self, on_ready: Callable[[], None] = lambda: None) -> None:
        """Be master, until cancelled.

        Raises:
            Deposed: another node may be master now; the nodes have to be asked.
        """
        async with asyncio.TaskGroup() as group:
            storing = group.create_task(self._store(), name="store")
            # Only with this commit the state that was found counts as acknowledged, and
            # this node as the one to be named.
            await self.store.commit(self._taken_over)
            publisher = Publisher(self.store, self._nodes)
            users = RestUsersPublisher(self.store, self._nodes)
            besides = [
                group.create_task(work, name=name)
                for name, work in {
                    "publisher": publisher.run(),
                    "address": AddressKeeper(self._me.name, self.store, self._nodes).run(),
                    "confd": ConfdPublisher(self.store, self._nodes, self._outside.random).run(),
                    "users of the REST interface": users.run(),
                    "feed": self.feed.run(),
                    "figures": self.figures.run(),
                    "keys": learn_keys(self.store, self._nodes),
                    "watch of the own node": self._watch_own_node(),
                    "doubt": self._raise_doubt(),
                }.items()
            ]
            try:
                self.queue.resume()
                with suppress(GntError):  # it is told again
                    await publisher.tell(self._me)  # whoever asks this node next knows its master
                log.info("%s is master, epoch %s", self._me.name, self.confirmed.won.epoch)
                on_ready()
                await storing
            finally:
                for task in besides:
                    task.cancel()
                await self.queue.close()
                await self._around.close()

    async def _store(self) -> None:
        await self.store.run()
        self.store.check_writable()  # it only ends when deposed, and this says by whom
        raise Deposed("The store of the cluster's state has ended.")

    async def _watch_own_node(self) -> None:
        """Hear at once that another takes over, if this node is among those that grant it."""
        epoch = self.confirmed.won.epoch
        own = self._outside.nodes.service(Mastership, self._me)
        while True:
            with suppress(GntError):  # it is being restarted
                ballot = await own.watch(epoch=epoch)
                if ballot.epoch > epoch:
                    return self._be_in_doubt(
                        Deposed(
                            f"{self._me.name} granted epoch {ballot.epoch} to {ballot.holder}.",
                            epoch=ballot.epoch,
                            master=ballot.holder,
                        )
                    )
            await asyncio.sleep(WATCH_PAUSE_S)

    def _be_in_doubt(self, error: Deposed) -> None:
        if not self._doubt.done():
            self._doubt.set_result(error)

    async def _raise_doubt(self) -> None:
        raise await self._doubt

    async def _heed(self, node: Node, error: Deposed) -> None:
        """Have all nodes asked when one that has a job to do obeys another master.

        The job stands where it is, and goes on with whoever is confirmed. But a node that says
        so again soon after is not believed: one liar must not keep the master from its work.
        """
        if asyncio.get_running_loop().time() - self._confirmed_s < BELIEF_S:
            log.warning("%s does not obey, though most nodes do: %s", node.name, error)
            return
        self._be_in_doubt(error)
        await asyncio.Future()  # until this is cancelled with all that this master does

    def _taken_over(self, state: State) -> list[Put]:
        cluster = state.config.cluster
        node = state.config.node(self._me.name)
        won = self.confirmed.won
        overrides = cluster.overrides
        if won.overridden:
            # Tasks on nodes have the numbers of their jobs: one that is given twice would find its
            # work done by the other. What silent nodes know of can only be guessed.
            unknown = UNKNOWN_JOBS if self.confirmed.unheard else 0
            override = Override(
                time=self._outside.now(),
                epoch=won.epoch,
                master=node.uuid,
                unheard=tuple(self.confirmed.unheard),
                last_job=JobId(max(state.newest_job, won.newest_job) + unknown),
            )
            overrides = (*overrides, override)
        return [Put(replace(cluster, master=node.uuid, overrides=overrides))]

    def _node(self) -> Node:
        return self.store.state.config.node(self._me.name)

    async def _look(self) -> Look:
        return await take_look(self._around.placing, lambda: self.store.state.config)

    async def _look_to_answer(self, question: Question) -> Look:
        return await look_to_answer(self._around.placing, lambda: self.store.state.config, question)

    def _source(self) -> Source:
        return Source(
            state=self.queue.newest(self.store.state),
            asker=NodeAsker(self._nodes),
            heard=self._nodes.heard,
            silence=self._nodes.silence,
            locks=self.locks.rows,
            archive=self.archive,
            waits=lambda job: "; ".join(reason.what for reason in self.queue.why(job)),
        )
