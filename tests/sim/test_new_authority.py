"""Another authority in the place of the cluster's: on all nodes or on none, while work goes on."""

import pytest

from common.errors import Conflict, InvalidRequest, NodeFailure
from common.model.job import Status
from common.model.secret import AUTHORITY_CERTIFICATE, NEXT_CERTIFICATE, NEXT_KEY
from common.names import NodeName
from common.rpc.server import Reply, refusal
from common.tls.context import AUTHORITY
from coordinator.operations.cluster.renew_crypto import RenewCrypto
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.node.remove import RemoveNode
from coordinator.operations.node.renew_key import RenewKey
from tests.sim.settings import GAMMA, create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.faults import Mishap, Once, Trap
from tests.support.network import Fault, Trip

REPLACE = RenewCrypto(new_cluster_certificate=True)
NODES = ("alpha", "beta", "gamma")


def trusted(cluster: SimulatedCluster) -> list[str]:
    """Return what each node trusts."""
    return [(m.paths.identity / AUTHORITY).read_text() for m in cluster.machines.values()]


def issuers(cluster: SimulatedCluster) -> list[str]:
    """Return who has signed what each node shows."""
    shown = [machine.shows() for machine in cluster.machines.values()]
    return [identity.issuer for identity in shown if identity is not None]


def own(cluster: SimulatedCluster) -> str:
    return cluster.state.secrets[AUTHORITY_CERTIFICATE].value


def is_renewal(trip: Trip) -> bool:
    return trip.call.name == "identity.renew"


def test_all_nodes_trust_the_new_one_alone_and_keep_their_keys() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            before = own(cluster)
            keys = [cluster.config.node(NodeName(name)).key for name in NODES]
            await cluster.run(REPLACE)
            assert own(cluster) != before
            assert trusted(cluster) == issuers(cluster) == [own(cluster)] * 3
            assert not {NEXT_KEY, NEXT_CERTIFICATE} & {*cluster.state.secrets}
            assert [cluster.config.node(NodeName(name)).key for name in NODES] == keys
            await cluster.run(create("web1", "gamma"))
            await cluster.take_over("beta")
            await cluster.run(REPLACE)
            assert trusted(cluster) == issuers(cluster) == [own(cluster)] * 3

    simulate(scenario())


@pytest.mark.parametrize("index", [1, 4])  # gamma is to trust both; beta is to show the new one
def test_a_node_that_fails_leaves_all_with_the_former_one(index: int) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            before = own(cluster)
            failing = Once(is_renewal, index, Mishap.FAILS_AFTER, cluster.restart_noded)
            cluster.network.faults.append(failing)
            job = await cluster.finished(await cluster.submit(REPLACE))
            assert job.status is Status.ERROR
            assert own(cluster) == before
            assert trusted(cluster) == issuers(cluster) == [before] * 3
            assert NEXT_KEY not in cluster.state.secrets

    simulate(scenario())


@pytest.mark.parametrize("index", [2, 5, 7])  # a coordinator dies in each of the rounds
@pytest.mark.parametrize("successor", ["alpha", "beta"])
def test_another_coordinator_goes_on_in_whichever_round(index: int, successor: str) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            before = own(cluster)
            trap = Trap(is_renewal, index, cluster.master.die)
            number = await cluster.submit(REPLACE)
            cluster.network.faults.append(trap)
            await trap.sprung.wait()
            cluster.network.faults.clear()
            await cluster.crash_master()
            if successor == "alpha":
                await cluster.start_master("alpha")
            else:
                await cluster.take_over("beta")
            job = await cluster.finished(number)
            assert job.status is Status.SUCCESS
            assert own(cluster) != before
            assert trusted(cluster) == issuers(cluster) == [own(cluster)] * 3

    simulate(scenario())


def test_it_is_not_begun_without_a_node_and_not_together_with_mere_renewals() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            both = RenewCrypto(new_cluster_certificate=True, node_certificates=True)
            with pytest.raises(InvalidRequest, match="leave --new-node-certificates out"):
                await cluster.run(both)
            await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
            with pytest.raises(Conflict, match="gamma cannot be asked"):
                await cluster.run(REPLACE)

    simulate(scenario())


class NoWayBack(Fault):
    """The third node cannot be given what the next authority has signed, nor the second the former.

    So an attempt gets stuck after the second shows a certificate of the next one.
    """

    def __init__(self) -> None:
        self._renewed = dict.fromkeys(NODES, 0)

    async def going(self, trip: Trip) -> Reply | None:
        if is_renewal(trip):
            self._renewed[trip.target] += 1
            if self._renewed[trip.target] > {"alpha": 1, "beta": 3, "gamma": 2}[trip.target]:
                return refusal(NodeFailure("The disk is broken."))
        return None


@pytest.mark.parametrize("is_removed", [True, False])
def test_keys_that_the_next_authority_has_signed_for_stay_revoked(is_removed: bool) -> None:
    """A first attempt got stuck; meanwhile a key is revoked that has a certificate of either."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            cluster.network.faults.append(NoWayBack())
            job = await cluster.finished(await cluster.submit(REPLACE))
            assert job.status is Status.ERROR
            assert NEXT_KEY in cluster.state.secrets
            next_one = cluster.machines["gamma"].shows()
            assert next_one is not None
            cluster.network.faults.clear()
            former = cluster.config.node(GAMMA).key
            is_signed = next_one.issuer == cluster.state.secrets[NEXT_CERTIFICATE].value
            assert is_signed, "the story is another one"
            operation = RemoveNode if is_removed else RenewKey
            await cluster.run(operation(node_name=GAMMA))
            job = await cluster.finished(await cluster.submit(REPLACE))
            assert job.status is Status.SUCCESS
            assert any("attempt before" in entry.message for entry in job.ops[0].log)
            await cluster.settle()
            assert cluster.config.revoked.keys == (former,)
            for name in ("alpha", "beta"):
                noded = cluster.machines[name].noded
                assert noded is not None
                assert former in noded.candidates.revoked
            await cluster.run(REPLACE)  # which has signed for nobody who is out
            assert not cluster.config.revoked.keys

    simulate(scenario())
