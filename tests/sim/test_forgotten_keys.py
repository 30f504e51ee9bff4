"""Revoked keys are forgotten with the authority that has signed for them, and not before."""

import pytest

from common.errors import Conflict
from common.names import KeyId
from coordinator.operations.cluster.renew_crypto import RenewCrypto
from coordinator.operations.node.remove import RemoveNode
from coordinator.operations.node.renew_key import RenewKey
from coordinator.operations.node.revoking import FOR_REMOVALS, MOST_REVOKED
from tests.sim.revoked_keys import (
    KEYS,
    everybody_knows,
    revoke_keys,
    watching,
)
from tests.sim.settings import BETA, GAMMA
from tests.support.clock import simulate
from tests.support.cluster import simulated_cluster
from tests.support.faults import Mishap, Once


def test_a_new_authority_makes_the_list_short_again() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await revoke_keys(cluster, *KEYS)
            trips = watching(cluster)
            await cluster.run(RenewCrypto(new_cluster_certificate=True))
            await cluster.settle()
            assert everybody_knows(cluster)
            assert not cluster.config.revoked.keys
            assert max(len(trip.body) for trip in trips.seen) < 2000
            await cluster.run(RenewKey(node_name=BETA))
            assert len(cluster.config.revoked.keys) == 1
            assert everybody_knows(cluster, *cluster.config.revoked.keys)

    simulate(scenario())


def test_what_would_revoke_too_many_is_refused_before_anything_is_done() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            many = [KeyId(f"{number:064x}") for number in range(MOST_REVOKED - FOR_REMOVALS)]
            await revoke_keys(cluster, *many)
            before = await cluster.snapshot()
            with pytest.raises(Conflict, match="begin the list anew"):
                await cluster.run(RenewKey(node_name=BETA))
            assert await cluster.snapshot() == before
            await cluster.run(RemoveNode(node_name=GAMMA))
            assert len(cluster.config.revoked.keys) == len(many) + 1
            await cluster.run(RenewCrypto(new_cluster_certificate=True))
            await cluster.run(RenewKey(node_name=BETA))
            assert len(cluster.config.revoked.keys) == 1

    simulate(scenario())


def test_the_list_stays_while_a_node_may_trust_the_former_authority() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await revoke_keys(cluster, *KEYS[:50])
            last = Once(
                lambda trip: trip.call.name == "identity.renew" and trip.target == "gamma",
                2, Mishap.FAILS_BEFORE, cluster.restart_noded,
            )  # fmt: skip
            cluster.network.faults.append(last)
            job = await cluster.finished(
                await cluster.submit(RenewCrypto(new_cluster_certificate=True))
            )
            assert last.hit
            assert any("since of gamma it is not known" in e.message for e in job.ops[0].log)
            assert everybody_knows(cluster, *KEYS[:50])
            assert cluster.config.revoked.keys == KEYS[:50]

    simulate(scenario())


def test_the_list_stays_while_a_node_does_not_say_whom_it_trusts() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await revoke_keys(cluster, *KEYS[:50])
            silent = Once(
                lambda trip: trip.call.name == "identity.who" and trip.target == "gamma",
                0, Mishap.FAILS_BEFORE, cluster.restart_noded,
            )  # fmt: skip
            cluster.network.faults.append(silent)
            await cluster.run(RenewCrypto(new_cluster_certificate=True))
            assert silent.hit
            assert everybody_knows(cluster, *KEYS[:50])

    simulate(scenario())
