"""An instance that is started paused does nothing until somebody looks at it, or starts it."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import Conflict
from common.model.instance import AdminState
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.node.modify import ModifyNode
from tests.sim.settings import GAMMA, WEB1, create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster

PAUSED = StartInstance(instance_name=WEB1, startup_paused=True)


def tell(story: Callable[[SimulatedCluster], Awaitable[None]]) -> None:
    """Begin with web1 on gamma, stopped."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma", start=False))
            await story(cluster)

    simulate(scenario())


async def state(cluster: SimulatedCluster) -> list[str]:
    (row,) = await cluster.master.luxi("QueryInstances", (), ["status", "guest_state"])
    return list(row)


def test_what_is_started_paused_runs_when_it_is_started_again() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(PAUSED)
        assert await state(cluster) == ["running", "paused, as it was started so"]
        await cluster.run(PAUSED)
        assert await state(cluster) == ["running", "paused, as it was started so"]
        with pytest.raises(Conflict, match=r"does not run on gamma \(paused\)"):
            await cluster.run(MigrateInstance(instance_name=WEB1))
        await cluster.run(replace(PAUSED, startup_paused=False))
        assert await state(cluster) == ["running", "running"]
        await cluster.run(PAUSED)
        assert await state(cluster) == ["running", "running"]

    tell(story)


def test_what_is_started_paused_is_stopped_at_once() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(PAUSED)
        begun = cluster.now()
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        assert cluster.now() - begun < 1.0
        assert await state(cluster) == ["ADMIN_down", "absent"]

    tell(story)


def test_what_is_on_an_offline_node_is_marked_to_be_started_on_request_only() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
        order = StartInstance(instance_name=WEB1)
        with pytest.raises(Conflict, match="gamma is marked offline"):
            await cluster.run(order)
        forgotten = replace(order, ignore_offline_nodes=True, no_remember=True)
        await cluster.run(forgotten)
        assert cluster.config.instance("web1").admin_state is AdminState.DOWN
        await cluster.run(replace(order, ignore_offline_nodes=True))
        assert cluster.config.instance("web1").admin_state is AdminState.UP
        assert await state(cluster) == ["ERROR_nodeoffline", None]

    tell(story)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"no_remember": True}, "is not marked: nothing is done with it"),
        ({}, "web1 is only marked to be started."),
        ({"startup_paused": True}, "with its own parameters, and not paused"),
        ({"beparams": {"maxmem": 128}}, "with its own parameters, and not paused"),
    ],
)
def test_what_is_not_done_on_an_offline_node_is_said(how: dict[str, Any], said: str) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
        order = StartInstance(instance_name=WEB1, ignore_offline_nodes=True)
        job = await cluster.finished(await cluster.submit(replace(order, **how)))
        assert any(said in entry.message for entry in job.ops[0].log)
        marked = any("only marked" in entry.message for entry in job.ops[0].log)
        assert marked is (cluster.config.instance("web1").admin_state is AdminState.UP)

    tell(story)
