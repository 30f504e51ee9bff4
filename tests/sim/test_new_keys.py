"""Another key for a node that stays where it is: made there, known to all, the former one out."""

import json

import pytest

from common.errors import Conflict, InvalidRequest, NodeFailure
from common.model.job import Status
from common.names import KeyId, NodeName
from common.tls.certificate import read_pem
from common.tls.context import CERTIFICATE, KEY, Peer
from coordinator.operations.cluster.renew_crypto import RenewCrypto
from coordinator.operations.instance.console import FindConsole
from coordinator.operations.instance.move import MoveInstance
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.node.renew_key import RenewKey
from noded.identity.store import IdentityStore
from tests.sim.settings import BETA, GAMMA, WEB1, create, web1_with_data
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.faults import Mishap, Once, Trap, Watching

ALPHA = NodeName("alpha")


def key_of(cluster: SimulatedCluster, name: str) -> KeyId:
    """Return the key that a node shows."""
    return read_pem((cluster.machines[name].paths.identity / CERTIFICATE).read_text()).key


def listens(cluster: SimulatedCluster, name: str, node: NodeName, key: KeyId) -> bool:
    """Tell whether one node takes orders of another one that shows a key."""
    noded = cluster.machines[name].noded
    assert noded is not None
    return noded.candidates.includes(Peer(node, key))


async def run_all(cluster: SimulatedCluster, operation: RenewCrypto) -> list[str]:
    """Run it and the jobs that it leaves to others; return what it said."""
    job = await cluster.finished(await cluster.submit(operation))
    assert job.status is Status.SUCCESS, job.ops[0].failure
    for good, number in job.ops[0].result["jobs"]:
        assert good
        left = await cluster.finished(number)
        assert left.status is Status.SUCCESS, left.ops[0].failure
    return [entry.message for entry in job.ops[0].log]


def test_all_nodes_but_the_master_get_another_key_and_the_former_ones_open_nothing() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma"))
            before = {name: key_of(cluster, name) for name in cluster.names}
            files = {
                name: (cluster.machines[name].paths.identity / KEY).read_text()
                for name in cluster.names
            }
            said = await run_all(cluster, RenewCrypto(node_keys=True))
            assert "alpha is the master and keeps its key" in said[-1]
            after = {name: key_of(cluster, name) for name in cluster.names}
            assert [before[n] == after[n] for n in cluster.names] == [True, False, False]
            for name in cluster.names:
                node = cluster.config.node(NodeName(name))
                assert (node.key, node.next_key) == (after[name], "")
                is_same = (cluster.machines[name].paths.identity / KEY).read_text() == files[name]
                assert is_same == (name == "alpha")
                for former in (BETA, GAMMA):
                    assert listens(cluster, name, former, after[former])
                    assert not listens(cluster, name, former, before[former])
            assert set(cluster.config.revoked.keys) == {before["beta"], before["gamma"]}
            (guest,) = await cluster.machines["gamma"].guest_list()
            assert guest.name == WEB1
            await cluster.take_over("beta")
            await run_all(cluster, RenewCrypto(node_keys=True, nodes=(ALPHA,)))
            assert key_of(cluster, "alpha") != before["alpha"]
            await cluster.take_over("alpha")
            await cluster.run(create("web2", "gamma"))

    simulate(scenario())


@pytest.mark.parametrize("call", ["roster.update", "identity.renew"])
def test_the_node_itself_takes_over_while_it_gets_another_key(call: str) -> None:
    """By whichever key it shows then; a coordinator does not change its own."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            former = key_of(cluster, "beta")
            trap = Trap(lambda trip: trip.call.name == call, 0, cluster.master.die)
            number = await cluster.submit(RenewKey(node_name=BETA))
            cluster.network.faults.append(trap)
            await trap.sprung.wait()
            cluster.network.faults.clear()
            await cluster.crash_master()
            await cluster.take_over("beta")
            job = await cluster.finished(number)
            assert job.status is Status.ERROR
            node = cluster.config.node(BETA)
            assert node.key == former
            assert node.next_key not in ("", former)
            assert key_of(cluster, "beta") in (node.key, node.next_key)
            await cluster.run(create("web1", "gamma"))
            await cluster.take_over("alpha")
            await cluster.run(RenewKey(node_name=BETA))
            after = cluster.config.node(BETA)
            assert (after.key, after.next_key) == (key_of(cluster, "beta"), "")
            assert after.key == node.next_key, "it has made a third one"
            assert not listens(cluster, "gamma", BETA, former)

    simulate(scenario())


@pytest.mark.parametrize("mishap", [Mishap.FAILS_BEFORE, Mishap.FAILS_AFTER])
def test_who_reaches_a_node_with_two_keys_is_told_the_one_that_it_shows(mishap: Mishap) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await web1_with_data(cluster)
            renews = Once(
                lambda trip: trip.call.name == "identity.renew", 0, mishap, cluster.restart_noded
            )
            copies = Watching(lambda trip: trip.call.name in ("copies.offer", "copies.begin_fetch"))
            cluster.network.faults += [renews, copies]
            with pytest.raises(NodeFailure):
                await cluster.run(RenewKey(node_name=GAMMA))
            assert cluster.config.node(GAMMA).next_key
            job = await cluster.finished(await cluster.submit(FindConsole(instance_name=WEB1)))
            assert job.ops[0].result["key"] == key_of(cluster, "gamma")
            await cluster.run(MoveInstance(instance_name=WEB1, target_node=ALPHA))
            await cluster.run(MoveInstance(instance_name=WEB1, target_node=GAMMA))
            peers = [json.loads(trip.body)["peer"] for trip in copies.seen]
            assert [peer["name"] for peer in peers] == ["alpha", "gamma", "gamma", "alpha"]
            assert [peer["key"] for peer in peers] == [
                key_of(cluster, peer["name"]) for peer in peers
            ]

    simulate(scenario())


def test_a_node_that_asks_for_its_former_key_again_is_not_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            real = IdentityStore.renewal_request

            async def lie(store: IdentityStore, instead_of: KeyId | None = None) -> str:
                del instead_of
                return await real(store)

            monkeypatch.setattr(IdentityStore, "renewal_request", lie)
            job = await cluster.finished(await cluster.submit(RenewKey(node_name=GAMMA)))
            assert job.ops[0].failure is not None
            assert "asked for another key" in job.ops[0].failure.message
            node = cluster.config.node(GAMMA)
            assert (node.key, node.next_key) == (key_of(cluster, "gamma"), "")
            assert not cluster.config.revoked.keys

    simulate(scenario())


def test_what_makes_no_sense_is_refused_and_changes_nothing() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            before = [key_of(cluster, name) for name in cluster.names]
            for operation, why in (
                (RenewCrypto(node_keys=True, node_certificates=True), "--new-node-keys alone"),
                (RenewCrypto(node_keys=True, new_cluster_certificate=True), "afterwards"),
                (
                    RenewCrypto(confd_hmac_key=True, nodes=(BETA,)),
                    "needs --new-node-certificates or --new-node-keys",
                ),
            ):
                with pytest.raises(InvalidRequest, match=why):
                    await cluster.run(operation)
            for also in (RenewKey(node_name=ALPHA), RenewCrypto(node_keys=True, nodes=(ALPHA,))):
                with pytest.raises(Conflict, match="move the mastership first"):
                    await cluster.run(also)
            await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
            with pytest.raises(Conflict, match="offline"):
                await cluster.run(RenewKey(node_name=GAMMA))
            assert [key_of(cluster, name) for name in cluster.names] == before

    simulate(scenario())
