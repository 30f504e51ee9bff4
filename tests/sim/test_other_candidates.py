"""Candidates that are away, full, slow or mistaken, and nodes out of service: nobody is stopped."""

import pytest

from common.errors import GntError, Unreachable
from common.names import Epoch, NodeName
from common.noderpc.disks import Disks
from coordinator.master.confirm import NotMaster
from coordinator.nodes.calls import Nodes
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.test.delay import Delay
from tests.sim.settings import create
from tests.support.clock import simulate
from tests.support.cluster import simulated_cluster
from tests.support.faults import Claiming, Failing, Slow
from tests.support.network import Line


def test_a_candidate_that_was_away_is_caught_up() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.machines["gamma"].kill_noded()
            for number in range(5):
                await cluster.run(create(f"web{number}", "alpha"))
            await cluster.machines["gamma"].start_noded()
            await cluster.settle()
            cluster.check_replicas()

    simulate(scenario())


def test_a_candidate_with_a_full_disk_stops_nobody() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            full = Failing(
                lambda trip: trip.target == "gamma" and trip.is_commit, "The disk of gamma is full."
            )
            cluster.network.faults.append(full)
            await cluster.run(create("web1", "alpha"))
            assert "gamma" in cluster.master.running.store.troubles
            cluster.network.faults.clear()
            await cluster.settle()
            cluster.check_replicas()
            assert not cluster.master.running.store.troubles

    simulate(scenario())


def test_a_slow_candidate_holds_nobody_up() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            cluster.network.faults.append(Slow(lambda trip: trip.target == "gamma", 2.0))
            began = cluster.now()
            await cluster.run(Delay(duration=0.0))
            assert cluster.now() - began < 1.0

    simulate(scenario())


def test_who_comes_back_is_told_how_it_is_a_candidate_again() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            gamma = NodeName("gamma")
            await cluster.run(ModifyNode(node_name=gamma, drained=True, force=True))
            job = await cluster.finished(
                await cluster.submit(ModifyNode(node_name=gamma, drained=False))
            )
            said = [entry.message for entry in job.ops[0].log]
            assert any("--master-candidate=yes gamma" in line for line in said), said
            assert not cluster.config.node(gamma).master_candidate
            again = ModifyNode(node_name=gamma, master_candidate=True)
            job = await cluster.finished(await cluster.submit(again))
            said = [entry.message for entry in job.ops[0].log]
            assert not any("could be more" in line for line in said), said

    simulate(scenario())


def test_an_offline_node_is_not_asked_but_votes() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=5, candidates=3) as cluster:
            await cluster.run(ModifyNode(node_name=NodeName("delta"), offline=True))
            with pytest.raises(Unreachable, match="marked offline"):
                line = Line(cluster.network, cluster.machines["alpha"])
                nodes = Nodes(line, Epoch(2), cluster.random)
                await nodes.service(Disks, cluster.config.node("delta")).find(disks=())
            await cluster.lose_power("alpha")
            await cluster.lose_power("epsilon")
            await cluster.take_over("beta")  # with gamma and delta these are three of five

    simulate(scenario())


def test_a_node_that_is_no_candidate_any_more_leaves_the_master_alone() -> None:
    """Its own lists, from before it was switched off, still call it one."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.lose_power("beta")
            await cluster.run(ModifyNode(node_name=NodeName("beta"), offline=True))
            await cluster.machines["beta"].boot()
            master, epoch = cluster.master, cluster.state.stamp.epoch
            with pytest.raises(NotMaster, match="beta is not among the master candidates"):
                await cluster.take_over("beta")
            cluster.master_is(master)
            await cluster.run(Delay(duration=0.0))
            await cluster.settle(60.0)
            await cluster.run(Delay(duration=0.0))
            assert cluster.state.stamp.epoch == epoch

    simulate(scenario())


def test_a_node_that_always_claims_another_master_stops_nobody() -> None:
    async def scenario() -> None:
        async with simulated_cluster(candidates=2) as cluster:
            cluster.network.faults.append(Claiming("gamma", "beta"))
            await cluster.settle(300.0)
            for number in range(5):
                with pytest.raises(GntError, match="obeys beta"):
                    await cluster.run(create("elsewhere", "gamma"))
                await cluster.run(create(f"web{number}", "alpha"))
                await cluster.settle(100.0)
            await cluster.crash_master()
            await cluster.start_master("alpha")
            await cluster.take_over("beta")
            await cluster.run(Delay(duration=0.0))

    simulate(scenario())
