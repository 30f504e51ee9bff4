"""How nodes come into the cluster, and how they leave it."""

import asyncio
import shutil

import pytest

from common.errors import Conflict, GntError, InvalidRequest, Unreachable
from common.names import KeyId, NodeId, NodeName
from common.noderpc.identity import Who
from common.rpc.envelope import answer
from common.rpc.server import Reply
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.node.remove import RemoveNode
from noded.replica.store import ReplicaFile
from tests.sim.members import add_delta, listened_to
from tests.sim.revoked_keys import known_at
from tests.sim.settings import BETA, DELTA, GAMMA, create
from tests.support.clock import simulate
from tests.support.cluster import simulated_cluster
from tests.support.network import Fault, Trip

SOON_S = 10.0


def test_the_certificate_of_a_node_that_was_removed_is_revoked_on_all_others() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=4, candidates=3) as cluster:
            keys = {name: cluster.config.node(NodeName(name)).key for name in cluster.names}
            await cluster.lose_power("gamma")
            await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
            await cluster.run(RemoveNode(node_name=DELTA))
            assert known_at(cluster, "beta") == (keys["delta"],)
            await cluster.machines["gamma"].boot()
            await cluster.run(ModifyNode(node_name=GAMMA, offline=False))
            await cluster.settle()
            assert known_at(cluster, "gamma") == (keys["delta"],)
            assert known_at(cluster, "delta") == ()  # it has left, and obeys nobody

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
