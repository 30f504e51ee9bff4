"""To whom nodes listen: to the candidates, whenever and from wherever they hear of them."""

import asyncio

import pytest
from msgspec.structs import replace

from common.errors import Conflict, GntError
from common.model.job import Status
from common.names import KeyId
from coordinator.operations.node.modify import ModifyNode
from coordinator.state.rows import Put
from tests.sim.members import keys_at, listened_to
from tests.sim.settings import ALPHA, BETA, GAMMA, create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster


def test_a_demotion_is_in_force_everywhere_when_its_job_has_ended() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=4) as cluster:
            await cluster.run(ModifyNode(node_name=GAMMA, master_candidate=False))
            for name in cluster.names:
                assert listened_to(cluster, name) == ["alpha", "beta", "delta"]
            with pytest.raises(GntError, match="gamma may not ask for"):
                await cluster.take_over("gamma")

    simulate(scenario())


def test_a_node_that_was_away_hears_of_a_demotion_when_it_is_back() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=4) as cluster:
            await cluster.lose_power("delta")
            number = await cluster.submit(ModifyNode(node_name=GAMMA, master_candidate=False))
            job = await cluster.finished(number)
            assert job.status is Status.SUCCESS
            assert any("delta could not be told" in entry.message for entry in job.ops[0].log)
            await cluster.machines["delta"].boot()
            assert listened_to(cluster, "delta") == ["alpha", "beta", "delta", "gamma"]
            await cluster.settle(20)
            assert listened_to(cluster, "delta") == ["alpha", "beta", "delta"]

    simulate(scenario())


def test_a_node_that_will_not_erase_its_state_is_demoted_all_the_same() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            noded = cluster.machines["gamma"].noded
            assert noded is not None

            async def refuse() -> None:
                raise Conflict("No.")

            noded._replica.erase = refuse  # type: ignore[method-assign]
            await cluster.run(ModifyNode(node_name=GAMMA, master_candidate=False))
            assert not cluster.config.node(GAMMA).master_candidate
            assert listened_to(cluster, "beta") == ["alpha", "beta"]

    simulate(scenario())


def test_who_comes_back_into_service_keeps_no_old_state() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(ModifyNode(node_name=GAMMA, offline=True))
            assert cluster.machines["gamma"].paths.replica.exists()
            await cluster.run(ModifyNode(node_name=GAMMA, offline=False))
            assert not cluster.machines["gamma"].paths.replica.exists()
            await cluster.settle()
            assert listened_to(cluster, "gamma") == ["alpha", "beta"]

    simulate(scenario())


def test_a_master_that_was_promoted_a_moment_ago_is_known_everywhere() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=5, candidates=2) as cluster:
            await cluster.run(ModifyNode(node_name=GAMMA, master_candidate=True))
            await cluster.lose_power("alpha")
            await cluster.take_over("gamma")
            await cluster.run(create("web1", "delta"))
            await cluster.settle()
            for name in ("beta", "gamma", "delta", "epsilon"):
                assert listened_to(cluster, name) == ["alpha", "beta", "gamma"]

    simulate(scenario())


def test_who_was_away_for_too_long_is_won_back_by_a_master_that_it_knows() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=5, candidates=2) as cluster:
            await cluster.lose_power("epsilon")
            await cluster.run(ModifyNode(node_name=GAMMA, master_candidate=True))
            await cluster.settle()  # gamma learns that it is one when the job has ended
            await cluster.take_over("gamma")
            await cluster.machines["epsilon"].boot()
            await cluster.settle()
            assert listened_to(cluster, "epsilon") == ["alpha", "beta"]
            with pytest.raises(GntError, match="Node epsilon listens to alpha, beta"):
                await cluster.run(create("web1", "epsilon"))
            await cluster.take_over("alpha")
            await cluster.settle()
            await cluster.take_over("gamma")
            await cluster.run(create("web1", "epsilon"))
            assert listened_to(cluster, "epsilon") == ["alpha", "beta", "gamma"]

    simulate(scenario())


def test_keys_of_nodes_that_joined_under_an_older_version_are_learnt() -> None:
    async def scenario() -> None:
        async with simulated_cluster(candidates=2) as cluster:
            known = {node.name: node.key for node in cluster.config.nodes.values()}
            for node in cluster.config.sorted_nodes():
                await cluster.master.running.store.commit([Put(replace(node, key=KeyId("")))])
            await cluster.machines["gamma"].kill_noded()
            await cluster.crash_master()
            await cluster.start_master("alpha")
            await cluster.settle()
            assert keys_at(cluster, "beta") == {name: known[name] for name in (ALPHA, BETA)}
            assert not cluster.config.node(GAMMA).key
            await cluster.machines["gamma"].start_noded()
            await cluster.settle(60)
            assert {node.name: node.key for node in cluster.config.nodes.values()} == known

    simulate(scenario())


def test_a_silent_node_keeps_no_other_from_hearing_who_is_master() -> None:
    async def scenario() -> None:
        async with simulated_cluster(candidates=3) as cluster:
            await cluster.settle()
            await cluster.lose_power(
                "alpha"
            )  # not known to be offline: calls to it take their time
            await cluster.take_over("beta")
            assert master_file(cluster, "beta") == "beta", "whoever asks on the new master"
            await asyncio.sleep(0.5)
            assert master_file(cluster, "gamma") == "beta"

    simulate(scenario())


def master_file(cluster: SimulatedCluster, node: str) -> str:
    return (cluster.machines[node].paths.ssconf / "master_node").read_text().strip()
