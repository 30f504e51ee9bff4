"""Master candidates in memory, over a network that is slow, loses calls and is cut in two."""

import asyncio
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from common.errors import Deposed, NodeFailure, Unreachable
from common.model.cluster import Cluster
from common.model.group import Group
from common.model.instance import Instance
from common.model.job import Job, OperationRecord
from common.model.node import Node
from common.model.template import DiskTemplate
from common.names import (
    ClusterId,
    ClusterName,
    Epoch,
    GroupId,
    GroupName,
    InstanceId,
    InstanceName,
    JobId,
    NodeId,
    NodeName,
)
from common.noderpc.replica import Replica
from coordinator.state.rows import Put, to_row
from coordinator.state.state import State
from coordinator.state.store import Store
from tests.support.replicas import Key, MemoryReplica

TIMEOUT_S = 15.0
GROUP = Group(uuid=GroupId("group"), name=GroupName("default"))


def node(name: str, *, candidate: bool = True) -> Node:
    return Node(
        uuid=NodeId(name), name=NodeName(name), primary_ip="10.0.0.1", group=GroupId("group"),
        master_candidate=candidate,
    )  # fmt: skip


def cluster(master: str) -> Cluster:
    return Cluster(uuid=ClusterId("cluster"), name=ClusterName("test"), master=NodeId(master))


def job(number: int, result: Any = None) -> Job:
    record = OperationRecord(input={"OP_ID": "OP_TEST_DELAY"}, summary="TEST", result=result)
    return Job(id=JobId(number), ops=(record,), received=0.0)


def instance(name: str, primary: str) -> Instance:
    return Instance(
        uuid=InstanceId(f"uuid of {name}"), name=InstanceName(name), primary_node=NodeId(primary),
        hypervisor="fake", disk_template=DiskTemplate.DISKLESS,
    )  # fmt: skip


class Candidates:
    """The replicas of a cluster, each behind a fence, and what is wrong with each just now."""

    def __init__(self, *names: str, random: Random | None = None) -> None:
        self.replicas = {NodeName(name): MemoryReplica(kept=5) for name in names}
        self.granted = dict.fromkeys(self.replicas, 0)
        self.silent: set[str] = set()  # calls to these are lost
        self.full: set[str] = set()  # their disks are full
        self.latency_s: dict[str, float] = dict.fromkeys(names, 0.001)
        self.loss = 0.0  # chance for a request, and again for an answer
        self.calls = 0
        self._random = random or Random(0)

    def dial(self, epoch: int) -> Callable[[Node], Replica]:
        """Return what a store of that epoch takes as ``replica_of``."""

        def replica_of(called: Node) -> Replica:
            return _Remote(self, called.name, epoch)  # type: ignore[abstract]

        return replica_of

    def rows(self, name: str) -> dict[Key, bytes]:
        return self.replicas[NodeName(name)].rows

    async def carry(
        self, name: NodeName, epoch: int, method: str, arguments: dict[str, Any]
    ) -> Any:
        self.calls += 1
        await self._travel(name)
        if method in ("append", "restore", "fill_archive", "erase"):
            if epoch < self.granted[name]:
                raise Deposed(f"Node {name} has granted epoch {self.granted[name]}.")
            # As noded does: else the master before could still undo what this one stored.
            self.granted[name] = epoch
            if name in self.full and arguments.get("commits") != ():
                raise NodeFailure(f"The disk of {name} is full.")
        result = await getattr(self.replicas[name], method)(**arguments)
        await self._travel(name)
        return result

    async def _travel(self, name: NodeName) -> None:
        delay_s = self.latency_s[name]
        await asyncio.sleep(self._random.uniform(delay_s / 2, delay_s))
        if name in self.silent or self._random.random() < self.loss:
            await asyncio.sleep(TIMEOUT_S)
            raise Unreachable(f"Node {name} did not answer.", node=name)


class _Remote(Replica):
    """A stub: every call goes over the network of ``candidates``."""

    def __init__(self, candidates: Candidates, name: NodeName, epoch: int) -> None:
        self._candidates = candidates
        self._name = name
        self._epoch = epoch


def _method(name: str) -> Any:
    async def method(self: _Remote, **arguments: Any) -> Any:
        return await self._candidates.carry(self._name, self._epoch, name, arguments)

    return method


for _name in Replica.calls:
    setattr(_Remote, _name, _method(_name))
_Remote.__abstractmethods__ = frozenset()


def stored_rows(state: State) -> dict[Key, bytes]:
    """Return what a replica of ``state`` holds."""
    rows = map(to_row, state.items())
    return {(row.kind, row.id): bytes(row.body) for row in rows}


async def initialise(candidates: Candidates, names: Iterable[str]) -> State:
    """Make a cluster of these candidates, one after the other; return its state."""
    first, *others = names
    store = Store(State(), Epoch(1), candidates.dial(1))
    async with running(store):
        await store.commit([Put(cluster(first)), Put(GROUP), Put(node(first))])
        for other in others:
            await store.commit([Put(node(other))])
    return store.state


class running:  # noqa: N801 -- used like a function: ``async with running(store):``
    """Runs a store for the length of a block."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def __aenter__(self) -> Store:
        self._group = asyncio.TaskGroup()
        await self._group.__aenter__()
        self._task = self._group.create_task(self._store.run())
        return self._store

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])
        await self._group.__aexit__(None, None, None)
