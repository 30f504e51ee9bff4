"""Who belongs to the cluster, who is listened to, and how nodes come and go."""

import asyncio
import shutil

import pytest
from msgspec.structs import replace

from common.errors import Conflict, GntError, InvalidRequest, NotFound, Unreachable
from common.model.job import Status
from common.names import KeyId, NodeId, NodeName
from common.noderpc.identity import Who
from common.rpc.envelope import answer
from common.rpc.server import Reply
from common.tls.certificate import read_pem
from common.tls.context import CERTIFICATE
from coordinator.operations.cluster.renew_crypto import RenewCrypto
from coordinator.operations.node.add import AddNode
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.node.remove import RemoveNode
from coordinator.state.rows import Put
from noded.replica.store import ReplicaFile
from tests.sim.settings import create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.image import ip_of
from tests.support.network import Fault, Trip

ALPHA, BETA, GAMMA, DELTA = (NodeName(name) for name in ("alpha", "beta", "gamma", "delta"))
SOON_S = 10.0


def keys_at(cluster: SimulatedCluster, name: str) -> dict[NodeName, KeyId]:
    noded = cluster.machines[name].noded
    assert noded is not None
    return noded.candidates.roster.candidates


def revoked_at(cluster: SimulatedCluster, name: str) -> tuple[KeyId, ...]:
    noded = cluster.machines[name].noded
    assert noded is not None
    return noded.candidates.revoked.keys


def listened_to(cluster: SimulatedCluster, name: str) -> list[str]:
    return sorted(keys_at(cluster, name))


def add_delta(cluster: SimulatedCluster, **fields: object) -> AddNode:
    token = str(cluster.machines["delta"].token)
    return AddNode(
        **{"node_name": DELTA, "primary_ip": ip_of("delta"), "token": token, **fields}  # type: ignore[arg-type]
    )


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


def test_the_certificate_of_a_node_that_was_removed_is_revoked_on_all_others() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=4, candidates=3) as cluster:
            keys = {name: cluster.config.node(NodeName(name)).key for name in cluster.names}
            await cluster.lose_power("gamma")
            await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
            await cluster.run(RemoveNode(node_name=DELTA))
            assert revoked_at(cluster, "beta") == (keys["delta"],)
            await cluster.machines["gamma"].boot()
            await cluster.run(ModifyNode(node_name=GAMMA, offline=False))
            await cluster.settle()
            assert revoked_at(cluster, "gamma") == (keys["delta"],)
            assert revoked_at(cluster, "delta") == ()  # it has left, and obeys nobody

    simulate(scenario())


def test_removing_a_candidate_promotes_another() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=4, candidates=3) as cluster:
            await cluster.run(RemoveNode(node_name=BETA))
            assert [n.name for n in cluster.config.candidates()] == ["alpha", "delta", "gamma"]
            await cluster.settle()
            cluster.check_replicas()
            assert listened_to(cluster, "delta") == ["alpha", "delta", "gamma"]

    simulate(scenario())


def test_a_dead_node_with_instances_is_marked_offline_by_force_only() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma"))
            await cluster.lose_power("gamma")
            with pytest.raises(Conflict, match=r"has instances \(web1\).*--force"):
                await cluster.run(ModifyNode(node_name=GAMMA, offline=True))
            await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
            assert cluster.config.node(GAMMA).offline

    simulate(scenario())


def test_a_node_that_was_removed_while_it_was_down_needs_a_new_token() -> None:
    async def scenario() -> None:
        async with simulated_cluster(strangers=1) as cluster:
            used = add_delta(cluster)
            first = await cluster.run(used)
            await cluster.settle()
            delta = cluster.machines["delta"]
            await cluster.lose_power("delta")
            await cluster.run(ModifyNode(node_name=DELTA, offline=True, force=True))
            await cluster.run(RemoveNode(node_name=DELTA))
            await delta.boot()
            with pytest.raises(InvalidRequest, match="another certificate than the token names"):
                await cluster.run(used)
            assert cluster.config.find_node(DELTA) is None
            # As the guide says: stop noded, delete the identity. Even if the state is left.
            await delta.kill_noded()
            shutil.rmtree(delta.paths.identity)
            assert delta.paths.replica.exists()
            await delta.start_noded()
            second = await cluster.run(add_delta(cluster, master_capable=False))
            assert second != first
            assert not delta.paths.replica.exists()
            assert listened_to(cluster, "delta") == ["alpha", "beta", "gamma"]

    simulate(scenario())


def test_the_old_identity_of_a_removed_node_is_worth_nothing() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.lose_power("gamma")
            await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
            await cluster.run(RemoveNode(node_name=GAMMA))
            await cluster.machines["gamma"].boot()
            before = ReplicaFile(cluster.machines["alpha"].paths.replica).stamp()
            with pytest.raises(GntError):
                await cluster.take_over("gamma")
            for name in ("alpha", "beta"):
                noded = cluster.machines[name].noded
                assert noded is not None
                assert noded._fence.grant.master == "alpha"
            assert ReplicaFile(cluster.machines["alpha"].paths.replica).stamp() == before

    simulate(scenario())


class Impostor(Fault):
    """Has somebody else, who knows the authority's key, answer once in place of a new node."""

    def __init__(self) -> None:
        self.has_joined = self.has_posed = False

    async def coming(self, trip: Trip, reply: Reply) -> Reply:
        self.has_joined = self.has_joined or trip.call.name == "mastership.grant"
        if self.has_joined and trip.call.returns is Who and not self.has_posed:
            self.has_posed = True
            return Reply(200, answer(Who(node_uuid=NodeId("whatever"), key=KeyId("e" * 64))))
        return reply


def test_nobody_takes_the_place_of_a_node_that_is_just_joining() -> None:
    async def scenario() -> None:
        async with simulated_cluster(strangers=1) as cluster:
            impostor = Impostor()
            cluster.network.faults.append(impostor)
            with pytest.raises(Conflict, match="is not the node that has just joined"):
                await cluster.run(add_delta(cluster))
            assert impostor.has_posed
            assert cluster.config.find_node(DELTA) is None
            await cluster.run(add_delta(cluster))
            assert cluster.config.node(DELTA).key != "e" * 64

    simulate(scenario())


@pytest.mark.parametrize("trouble", ["nobody listens", "the wire is dead"])
def test_a_wrong_address_is_told_within_seconds_and_nothing_is_undone(trouble: str) -> None:
    async def scenario() -> None:
        async with simulated_cluster(strangers=1) as cluster:
            order = add_delta(cluster)
            if trouble == "nobody listens":
                await cluster.machines["delta"].kill_noded()
            else:
                cluster.cut("alpha", "delta")
            before, began = cluster.config, asyncio.get_running_loop().time()
            job = await cluster.finished(await cluster.submit(order))
            assert asyncio.get_running_loop().time() - began < SOON_S
            failure = job.ops[0].failure
            assert failure is not None
            assert failure.code == Unreachable.code
            assert failure.message.endswith("Nothing was done to it.")
            assert not job.ops[0].journal
            assert cluster.config is before

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
