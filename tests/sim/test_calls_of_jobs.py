"""How jobs reach nodes: by id, by reference, or as a whole."""

import pytest
from msgspec.structs import replace

from common.errors import NotFound, Unreachable
from common.model.job import Job
from common.model.node import NodeRef
from common.names import JobId, NodeId, NodeName
from common.noderpc.instances import Instances
from common.noderpc.mastership import Mastership
from coordinator.jobs.context import JobContext
from coordinator.jobs.running import RunningJob
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.node.remove import RemoveNode
from tests.sim.settings import GAMMA
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.faults import Watching


def _context(cluster: SimulatedCluster) -> JobContext:
    running = RunningJob(Job(id=JobId(1000), ops=(), received=cluster.now()))
    return JobContext(cluster.master.running._around, running, 0)


def test_a_node_is_reached_however_it_is_named() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            context, gamma = _context(cluster), cluster.config.node("gamma")
            seen = Watching(lambda trip: trip.call.name == "instances.guests")
            cluster.network.faults.append(seen)
            for node in (gamma.uuid, gamma.ref, gamma):
                assert await context.call(Instances, node).guests() == ()
            assert [trip.target for trip in seen.seen] == ["gamma"] * 3

    simulate(scenario())


def test_a_node_that_has_left_is_reached_as_a_whole_only() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            gamma = cluster.config.node("gamma")
            await cluster.lose_power("gamma")
            await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
            await cluster.run(RemoveNode(node_name=GAMMA))
            context = _context(cluster)
            with pytest.raises(NotFound, match="Node gamma is not in the configuration any more"):
                context.call(Instances, gamma.ref)
            with pytest.raises(NotFound):
                context.call(Instances, gamma.uuid)
            with pytest.raises(Unreachable, match="gamma"):
                await context.call(Mastership, gamma).vote()

    simulate(scenario())


def test_what_the_configuration_says_by_then_counts() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            context, before = _context(cluster), cluster.config.node("gamma")
            await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
            for node in (before.uuid, before.ref, before):
                with pytest.raises(Unreachable, match="gamma is marked offline"):
                    await context.call(Instances, node).guests()
            elsewhere = replace(before, primary_ip="192.0.2.99")
            await cluster.run(ModifyNode(node_name=GAMMA, offline=False))
            assert await context.call(Instances, elsewhere).guests() == ()

    simulate(scenario())


def test_a_reference_reads_as_the_name() -> None:
    ref = NodeRef(uuid=NodeId("00000000-0000-4000-8000-000000000003"), name=NodeName("gamma"))
    assert f"start web1 on {ref}" == "start web1 on gamma"
