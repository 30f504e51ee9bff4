"""The cluster as one running operation sees it."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from common.errors import Cancelled, GntError, NotFound, Unreachable
from common.model.job import LISTED
from common.model.node import Node, NodeRef
from common.names import NodeId, NodeName, TaskId
from common.noderpc.facts import Facts, NodeFacts
from common.noderpc.identity import Identity, Join
from common.noderpc.mastership import Mastership
from common.noderpc.tasks import Tasks, TaskState
from common.rpc.client import Transport, stub
from common.rpc.declare import NodeService
from common.rpc.envelope import said_by_node
from coordinator.disks.kinds import pools_of
from coordinator.jobs.meeting import SocketMeeting
from coordinator.jobs.running import DETAIL, MESSAGE, RunningJob, ended
from coordinator.jobs.shown_calls import ShownCalls
from coordinator.locks.names import Owner
from coordinator.nodes.calls import Nodes
from coordinator.nodes.each import each
from coordinator.nodes.reports import Live, Reports
from coordinator.nodes.sign_of_life import Address, IsAlive
from coordinator.operations.cluster_view import Authority
from coordinator.operations.placement.promises import Promise
from coordinator.operations.placement.shared import Placing, RunProgram, SearchPath
from coordinator.state.config import Config
from coordinator.state.state import State
from coordinator.state.store import Store

K = TypeVar("K")
S = TypeVar("S", bound=NodeService)
T = TypeVar("T")

WATCH_S = 20.0  # length of one look at a task on a node
PROGRESS_S = 1.0  # between two messages of a task in the job's log
MEMBER_LOOKS, MEMBER_PAUSE_S = 40, 0.25  # how long a node may take to change its listener


class Surroundings:
    """What all jobs share; made once by the daemon, or by a simulation."""

    def __init__(
        self,
        store: Store,
        nodes: Nodes,
        *,
        now: Callable[[], float],
        new_uuid: Callable[[], str],
        authority: Callable[[State], Authority],
        strangers: Callable[[Node, bytes], Transport],
        is_alive: IsAlive,
        run_program: RunProgram,
        search_path: SearchPath,
        meetings: Path,
    ) -> None:
        """Take what it is made of; ``meetings`` is the folder for sockets of jobs."""
        self.store, self.nodes, self.strangers = store, nodes, strangers
        self.now, self.new_uuid, self.authority = now, new_uuid, authority
        self.meetings, self.is_alive = meetings, is_alive
        spaceless = Reports(lambda node: nodes.service(Facts, node).facts())
        self.placing = Placing(Reports(self._ask), spaceless, run_program, search_path)

    async def close(self) -> None:
        await self.placing.reports.close()
        await self.placing.spaceless.close()
        await self.nodes.silence.close()

    async def _ask(self, node: Node) -> NodeFacts:
        standing = self.placing.promises.standing()
        named = (pool for promise in standing for pool in promise.pools)
        pools = dict.fromkeys((*pools_of(self.store.state.config), *named))
        return await self.nodes.service(Facts, node).facts(storage=tuple(pools))


class JobContext:
    """Implements ``coordinator.operations.cluster_view.Cluster`` for one operation of a job."""

    def __init__(self, around: Surroundings, running: RunningJob, index: int) -> None:
        self._around, self._running, self._index = around, running, index

    @property
    def state(self) -> State:
        return self._around.store.state

    @property
    def config(self) -> Config:
        return self._around.store.state.config

    @property
    def troubles(self) -> Mapping[NodeName, GntError]:
        return self._around.store.troubles

    @property
    def authority(self) -> Authority:
        return self._around.authority(self.state)

    @property
    def owner(self) -> Owner:
        return Owner(f"{self._running.owner}, operation {self._index + 1}")

    @property
    def debug_level(self) -> int:
        return int(self._running.op(self._index).input.get("debug_level", 0))

    @property
    def placing(self) -> Placing:
        return self._around.placing

    def promise(self, *promises: Promise) -> None:
        self.placing.promises.make(self.owner, promises)

    def now(self) -> float:
        return self._around.now()

    def steady(self) -> float:
        return asyncio.get_running_loop().time()

    def new_uuid(self) -> str:
        return self._around.new_uuid()

    def log(self, message: str, *, detail: bool = False) -> None:
        self._running.log(self._index, self.now(), message, DETAIL if detail else MESSAGE)

    def announce(self, kind: str, value: dict[str, Any] | list[Any]) -> None:
        told = {LISTED: value} if isinstance(value, list) else value
        self._running.log(self._index, self.now(), f"({kind})", kind, told)

    def task_id(self, purpose: str) -> TaskId:
        return TaskId(f"{self.config.cluster.uuid}-{self._running.id}-{self._index}-{purpose}")

    async def run_task(self, node: NodeId | NodeRef, task: TaskId) -> None:
        watch = asyncio.ensure_future(self._watch(node, task))
        wish = asyncio.ensure_future(self._running.cancel_wanted.wait())
        if self._running.past_return:
            wish.cancel()
        try:
            await asyncio.wait({watch, wish}, return_when=asyncio.FIRST_COMPLETED)
            if not watch.done() and wish.done() and not wish.cancelled():
                await self.call(Tasks, node).cancel(task=task)
            return await watch
        finally:
            await ended(watch, wish)

    async def _watch(self, node: NodeId | NodeRef, task: TaskId) -> None:
        seen, told_at = "", -PROGRESS_S
        while True:
            status = await self.call(Tasks, node).watch(task=task, seen=seen, wait_s=WATCH_S)
            if status.message and status.message != seen and status.state is TaskState.RUNNING:
                now = asyncio.get_running_loop().time()
                if now - told_at >= PROGRESS_S:
                    self.log(status.message)
                    told_at = now
            seen = status.message
            match status.state:
                case TaskState.DONE:
                    return
                case TaskState.CANCELLED:
                    raise Cancelled(f"Job {self._running.id} was cancelled by the operator.")
                case TaskState.FAILED:
                    raise said_by_node(status.error_code, status.message, dict(status.error_detail))
                case TaskState.RUNNING:
                    continue

    def call(self, kind: type[S], node: NodeId | NodeRef | Node) -> S:
        uuid = node if isinstance(node, str) else node.uuid
        found = self.config.nodes.get(uuid, node if isinstance(node, Node) else None)
        if found is None:
            raise NotFound(f"Node {node} is not in the configuration any more.", node=str(node))
        return self.at(kind, found)

    def at(self, kind: type[S], node: Node) -> S:
        return self._around.nodes.service(kind, node, self._running.id, through=self._shown)

    def stranger(self, node: Node, fingerprint: bytes) -> Join:
        return stub(Join, self._around.strangers(node, fingerprint))

    async def is_alive(self, addresses: Collection[Address]) -> bool:
        return await self._around.is_alive(addresses)

    async def is_member(self, node: Node) -> bool:
        try:
            who = await self.call(Identity, node).who()
        except Unreachable as error:
            if error.detail.get("stranger"):
                return False
            raise
        return who.node_uuid == node.uuid

    async def wait_for_member(self, node: Node) -> None:
        for _ in range(MEMBER_LOOKS):
            with suppress(Unreachable):
                if await self.is_member(node):
                    return
            await self.sleep(MEMBER_PAUSE_S)
        await self.call(Mastership, node).vote()

    async def sleep(self, seconds: float, *, heed_cancel: bool = True) -> None:
        if self._running.past_return or not heed_cancel:
            return await asyncio.sleep(seconds)
        try:
            async with asyncio.timeout(seconds):
                await self._running.cancel_wanted.wait()
        except TimeoutError:
            return None
        raise self._cancelled()

    def meeting(self) -> SocketMeeting:
        return SocketMeeting(self._around.meetings / f"job-{self._running.id}.sock")

    async def happens(self, event: Coroutine[Any, Any, None], *, within_s: float) -> bool:
        work = asyncio.ensure_future(event)
        wish = asyncio.ensure_future(self._running.cancel_wanted.wait())
        try:
            await asyncio.wait({work, wish}, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
            if wish.done():
                raise self._cancelled()
            if work.done():
                work.result()
            return work.done()
        finally:
            await ended(work, wish)

    def _cancelled(self) -> Cancelled:
        return Cancelled(f"Job {self._running.id} was cancelled; what it had done is undone.")

    async def each(self, calls: Mapping[K, Awaitable[T]]) -> dict[K, T | GntError]:
        return await each(calls)

    async def facts_of(self, nodes: Iterable[Node], *, space: bool = True) -> Live:
        return await (self.placing.reports if space else self.placing.spaceless).of(nodes)

    def _shown(self, line: Transport) -> Transport:
        return ShownCalls(line, self._running, self.now)
