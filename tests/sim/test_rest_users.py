"""The users of the REST interface follow the mastership, and no node keeps them that is not to."""

import asyncio
import base64
from pathlib import Path

import pytest

from common.errors import Conflict, NotFound
from common.rest_users import hashed, parse_users
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.node.remove import RemoveNode
from tests.sim.settings import GAMMA
from tests.sim.test_watcher import watch
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.rest import rest_of

LINE = f"ci {hashed('token')} operator"


def users_on(cluster: SimulatedCluster, node: str) -> list[str] | None:
    """Return whom a node lets in; None where it has not been told."""
    path = cluster.machines[node].paths.cluster_rapi_users
    return [*parse_users(path.read_text())] if path.exists() else None


async def change(cluster: SimulatedCluster, add: str = "", remove: str = "") -> None:
    await cluster.master.luxi("ChangeRestUsers", add, remove)
    await asyncio.sleep(0.9)


def test_candidates_know_them_and_so_does_the_next_master() -> None:
    async def story() -> None:
        async with simulated_cluster(candidates=2) as cluster:
            await change(cluster, LINE)
            assert [users_on(cluster, node) for node in ("alpha", "beta", "gamma")] == [
                ["ci"], ["ci"], None,
            ]  # fmt: skip
            with pytest.raises(Conflict):
                await change(cluster, LINE)
            await cluster.crash_master()
            await cluster.take_over("beta")
            assert await cluster.master.luxi("RestUsers") == f"{LINE}\n"
            await change(cluster, remove="ci")
            assert [users_on(cluster, node) for node in ("alpha", "beta")] == [[], []]
            with pytest.raises(NotFound):
                await change(cluster, remove="ci")

    simulate(story())


def test_a_node_that_is_no_candidate_any_more_forgets_them() -> None:
    async def story() -> None:
        async with simulated_cluster(candidates=3) as cluster:
            await change(cluster, LINE)
            assert users_on(cluster, "gamma") == ["ci"]
            await cluster.run(ModifyNode(node_name=GAMMA, master_candidate=False))
            await asyncio.sleep(0.9)
            assert users_on(cluster, "gamma") is None
            await cluster.run(ModifyNode(node_name=GAMMA, master_candidate=True))
            await asyncio.sleep(0.9)
            assert users_on(cluster, "gamma") == ["ci"]
            await cluster.run(RemoveNode(node_name=GAMMA))
            assert users_on(cluster, "gamma") is None

    simulate(story())


def test_a_node_that_was_away_hears_of_a_revocation_when_it_is_back() -> None:
    async def story() -> None:
        async with simulated_cluster(candidates=3) as cluster:
            await change(cluster, LINE)
            cluster.cut("alpha", "gamma")
            await change(cluster, remove="ci")
            assert [users_on(cluster, node) for node in ("beta", "gamma")] == [[], ["ci"]]
            cluster.heal()
            await asyncio.sleep(30)
            assert users_on(cluster, "gamma") == []

    simulate(story())


def test_a_candidate_whose_disk_is_that_of_last_week_hears_of_a_revocation() -> None:
    async def story() -> None:
        async with simulated_cluster(candidates=3) as cluster:
            await change(cluster, LINE)
            gamma = cluster.machines["gamma"]
            kept = gamma.paths.cluster_rapi_users.read_bytes()
            await change(cluster, remove="ci")
            await gamma.kill_noded()
            gamma.paths.cluster_rapi_users.write_bytes(kept)
            await gamma.start_noded()
            assert users_on(cluster, "gamma") == ["ci"]
            await watch(cluster)
            await cluster.settle()
            assert users_on(cluster, "gamma") == []

    simulate(story())


def test_a_token_opens_the_interface_until_it_is_revoked(tmp_path: Path) -> None:
    async def story() -> None:
        bearer = {"Authorization": "Bearer ci.token"}
        async with simulated_cluster(nodes=1) as cluster, rest_of(cluster, tmp_path) as rest:
            asked = "GET", "/2/query/node?fields=name"
            assert (await rest.ask(*asked, user=None, **bearer)).status == 401
            await change(cluster, LINE)
            assert (await rest.ask(*asked, user=None, **bearer)).status == 200
            mine = {"Authorization": "Basic " + base64.b64encode(b"ci:token").decode()}
            assert (await rest.ask(*asked, user=None, **mine)).status == 200
            await change(cluster, remove="ci")
            assert (await rest.ask(*asked, user=None, **bearer)).status == 401

    simulate(story())
