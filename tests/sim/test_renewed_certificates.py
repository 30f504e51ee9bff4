"""Certificates of nodes are renewed: each is another one for the same key."""

import pytest

from common.errors import Conflict, InvalidRequest, NotFound
from common.tls.certificate import read_pem
from common.tls.context import CERTIFICATE
from coordinator.operations.cluster.renew_crypto import RenewCrypto
from coordinator.operations.node.modify import ModifyNode
from tests.sim.members import keys_at
from tests.sim.settings import GAMMA
from tests.support.clock import simulate
from tests.support.cluster import simulated_cluster


def test_a_renewed_certificate_is_another_one_for_the_same_key() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            files = [cluster.machines[name].paths.identity / CERTIFICATE for name in cluster.names]
            before, listed = [file.read_text() for file in files], keys_at(cluster, "beta")
            await cluster.lose_power("gamma")
            number = await cluster.submit(RenewCrypto(node_certificates=True))
            job = await cluster.finished(number)
            told = [entry.message for entry in job.ops[0].log]
            assert any("gamma keeps its old certificate" in message for message in told)
            after = [file.read_text() for file in files]
            assert [old == new for old, new in zip(before, after, strict=True)] == [
                False, False, True,
            ]  # fmt: skip
            assert [read_pem(text).key for text in after] == [read_pem(text).key for text in before]
            assert keys_at(cluster, "beta") == listed

    simulate(scenario())


def test_certificates_of_some_nodes_are_renewed_and_the_others_stay() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            files = [cluster.machines[name].paths.identity / CERTIFICATE for name in cluster.names]
            before = [file.read_text() for file in files]
            await cluster.run(RenewCrypto(node_certificates=True, nodes=("beta",)))
            after = [file.read_text() for file in files]
            changed = [old != new for old, new in zip(before, after, strict=True)]
            assert changed == [False, True, False]
            with pytest.raises(InvalidRequest, match="--nodes needs --new-node-certificates"):
                await cluster.run(RenewCrypto(confd_hmac_key=True, nodes=("beta",)))
            with pytest.raises(NotFound, match="omega"):
                await cluster.run(RenewCrypto(node_certificates=True, nodes=("omega",)))
            await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
            with pytest.raises(Conflict, match="offline cannot be asked: gamma"):
                await cluster.run(RenewCrypto(node_certificates=True, nodes=("beta", "gamma")))

    simulate(scenario())
