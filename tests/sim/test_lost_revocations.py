"""Lists of revoked keys that are not what a node was told: lost, damaged, or of another state."""

import pytest
from msgspec.structs import replace

from common.revoked_keys import AT_FIRST, RevokedKeys
from coordinator.operations.cluster.redist_conf import RedistConf
from coordinator.operations.node.roster import roster_of
from tests.sim.revoked_keys import KEYS, everybody_knows, known_at, revoke_keys, told, watching
from tests.sim.test_returning_nodes import findings
from tests.sim.test_watcher import watch
from tests.support.clock import simulate
from tests.support.cluster import simulated_cluster


@pytest.mark.parametrize("before", [0, 50])
def test_a_node_whose_disk_is_that_of_last_week_is_told_when_it_is_heard_of(before: int) -> None:
    """Nothing else has changed: any answer shows that its noded was started anew."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await revoke_keys(cluster, *KEYS[:before])
            gamma = cluster.machines["gamma"]
            kept = gamma.paths.revoked_keys.read_bytes()
            await revoke_keys(cluster, *KEYS[before:100])
            await gamma.kill_noded()
            gamma.paths.revoked_keys.write_bytes(kept)
            cluster.disk.have_all_durable(gamma.paths.root)
            await gamma.start_noded()
            assert known_at(cluster, "gamma") == KEYS[:before]
            trips = watching(cluster)
            await watch(cluster)
            await cluster.settle()
            assert everybody_knows(cluster, *KEYS[:100])
            assert told(trips, "gamma") == [AT_FIRST, 100 - before]
            await cluster.settle(60)
            assert len(told(trips, "gamma")) == 2

    simulate(scenario())


def test_a_node_that_loses_its_list_while_it_runs_is_found_by_verify_and_told_on_request() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await revoke_keys(cluster, *KEYS[:100])
            gamma = cluster.machines["gamma"].noded
            assert gamma is not None
            await gamma.candidates.update(gamma.candidates.roster, RevokedKeys(KEYS[:50]).after(0))
            assert known_at(cluster, "gamma") == KEYS[:50]
            assert any("which 100 certificate(s) are revoked" in f for f in await findings(cluster))
            trips = watching(cluster)
            await cluster.run(RedistConf())
            assert everybody_knows(cluster, *KEYS[:100])
            assert told(trips, "gamma") == [AT_FIRST, 50]

    simulate(scenario())


@pytest.mark.parametrize("left", [b"", b"\0" * 500, KEYS[7].encode()])
def test_a_node_whose_list_is_damaged_has_all_of_it_again(left: bytes) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await revoke_keys(cluster, *KEYS[:50])
            gamma = cluster.machines["gamma"]
            await gamma.kill_noded()
            gamma.paths.revoked_keys.write_bytes(left)
            await gamma.start_noded()
            await revoke_keys(cluster, KEYS[50])
            assert everybody_knows(cluster, *KEYS[:51])
            await gamma.lose_power()
            await gamma.boot()
            assert everybody_knows(cluster, *KEYS[:51])

    simulate(scenario())


def test_a_master_whose_state_lost_some_keys_has_nodes_forget_them_too() -> None:
    """It was given an operator's word; what it did not have cannot be on its list."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await revoke_keys(cluster, *KEYS[:50])
            gamma = cluster.machines["gamma"].noded
            assert gamma is not None
            other = RevokedKeys((*KEYS[:40], *KEYS[100:190]))
            age = replace(roster_of(cluster.state), revoked=())
            await gamma.candidates.update(age, other.after(0))
            assert known_at(cluster, "gamma") == other.keys
            trips = watching(cluster)
            await revoke_keys(cluster, KEYS[50])
            assert everybody_knows(cluster, *KEYS[:51])
            assert told(trips, "gamma") == [AT_FIRST, 51]

    simulate(scenario())
