"""The state on three real replicas, over real TLS."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from common.errors import Deposed
from common.model.node import Node
from common.names import Epoch, NodeName
from common.noderpc.mastership import Mastership
from common.noderpc.replica import Replica
from coordinator.nodes.calls import Nodes
from coordinator.nodes.each import each, split
from coordinator.state.loading import load
from coordinator.state.rows import Put
from coordinator.state.state import State
from coordinator.state.store import Store
from tests.support.candidates import GROUP, cluster, instance, job, node, running
from tests.support.https_node import TestCluster, run, served

NAMES = ("alpha", "beta", "gamma")
ALPHA = NodeName("alpha")


@asynccontextmanager
async def three(root: Path) -> AsyncIterator[tuple[Nodes, dict[str, Node]]]:
    """Serve three members; give a caller of epoch 1 and the nodes."""
    authority = TestCluster(root / "authority", candidates=NAMES)
    async with AsyncExitStack() as stack:
        found = {}
        for name in NAMES:
            here = await stack.enter_async_context(served(root / name))
            await authority.join(here, name)
            there = here.as_object(name)
            found[name] = msgspec.structs.replace(
                node(name), primary_ip=there.primary_ip, port=there.port
            )
        yield await stack.enter_async_context(authority.caller("alpha")), found


def test_commits_reach_all_and_a_successor_finds_them(tmp_path: Path) -> None:
    async def story() -> None:
        async with three(tmp_path) as (nodes, found):
            calls = {name: nodes.service(Mastership, found[name]) for name in NAMES}
            await each({n: c.grant(epoch=Epoch(1), master=ALPHA) for n, c in calls.items()})
            store = Store(State(), Epoch(1), lambda node: nodes.service(Replica, node))
            async with running(store):
                await store.commit([Put(cluster("alpha")), Put(GROUP), Put(found["alpha"])])
                await store.commit([Put(instance(f"web{n}", "alpha")) for n in range(300)])
                for name in NAMES[1:]:
                    await store.commit([Put(found[name])])
                async with asyncio.TaskGroup() as group:
                    for number in range(1, 101):
                        group.create_task(store.commit([Put(job(number, "ü" * number))]))
                async with asyncio.timeout(10):
                    while len(await stamps(nodes, found)) > 1:
                        pass  # the last one may still be at it
            for name in NAMES:
                loaded = await load(nodes.service(Replica, found[name]))
                assert loaded.state == store.state
                ballot = await calls[name].vote()
                assert (ballot.stamp, ballot.newest_job) == (store.state.stamp, 100)

    async def stamps(nodes: Nodes, found: dict[str, Node]) -> set[str]:
        asked = {name: nodes.service(Replica, found[name]).stamp() for name in NAMES}
        answers, errors = split(await each(asked))
        assert not errors
        return {stamp.digest for stamp in answers.values()}

    run(story())


def test_a_grant_to_another_master_ends_this_one(tmp_path: Path) -> None:
    async def story() -> None:
        async with three(tmp_path) as (nodes, found):
            store = Store(State(), Epoch(1), lambda node: nodes.service(Replica, node))
            async with running(store):
                await store.commit([Put(cluster("alpha")), Put(GROUP), Put(found["alpha"])])
                successor = nodes.service(Mastership, found["alpha"])
                await successor.grant(epoch=Epoch(2), master=found["beta"].name)
                with pytest.raises(Deposed, match="beta"):
                    await store.commit([Put(job(1))])
            loaded = await load(nodes.service(Replica, found["alpha"]))
            assert not loaded.state.jobs

    run(story())
