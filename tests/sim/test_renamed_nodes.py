"""A node that gets another name while its instances run."""

import pytest

from common.errors import Conflict, GntError, InvalidRequest, NotFound
from common.model.job import Status
from common.names import NodeName
from common.noderpc.identity import Identity
from common.tls.context import CERTIFICATE
from coordinator.operations.cluster.verify_group import VerifyGroup
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.node.rename import RenameNode
from tests.sim.settings import ALPHA, BETA, GAMMA, WEB1, create, mirrored
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.faults import Failing
from tests.support.network import Trip

BERND = NodeName("bernd")
RENAME = RenameNode(node_name=BETA, new_name=BERND)


async def guests(cluster: SimulatedCluster, machine: str) -> dict[str, str]:
    return {g.name: str(g.state) for g in await cluster.machines[machine].guest_list()}


def names_in(cluster: SimulatedCluster, machine: str) -> frozenset[str]:
    shown = cluster.machines[machine].shows()
    assert shown is not None
    return shown.names


def test_a_node_is_renamed_while_its_guests_run_and_mirrors() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(mirrored("web1", "beta", "gamma"))
            before = cluster.config.node(BETA)
            files = cluster.machines["beta"].paths.identity / CERTIFICATE
            shown = files.read_text()
            await cluster.run(RENAME)
            after = cluster.config.node(BERND)
            assert (after.uuid, after.key) == (before.uuid, before.key)
            assert files.read_text() != shown
            assert names_in(cluster, "beta") == {"bernd"}
            assert await guests(cluster, "beta") == {"web1": "running"}
            found = await cluster.run(VerifyGroup(group_name="default", findings=True))
            assert not [each for each in found if each["severity"] != "NOTICE"]
            await cluster.run(MigrateInstance(instance_name=WEB1))
            assert await guests(cluster, "gamma") == {"web1": "running"}
            with pytest.raises(NotFound, match="beta"):
                await cluster.run(ModifyNode(node_name=BETA, drained=True))

    simulate(scenario())


def test_a_renamed_candidate_votes_takes_over_and_is_obeyed_under_its_new_name() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(RENAME)
            await cluster.lose_power("alpha")
            await cluster.take_over("beta")  # the machine
            assert cluster.config.master().name == "bernd"
            await cluster.run(create("web1", "gamma"))
            await cluster.machines["alpha"].boot()
            await cluster.settle()
            cluster.check_replicas()
            for machine in ("alpha", "beta", "gamma"):
                noded = cluster.machines[machine].noded
                assert noded is not None
                assert sorted(noded.candidates.roster.candidates) == ["alpha", "bernd", "gamma"]
            await cluster.take_over("alpha")
            await cluster.run(ShutDownInstance(instance_name=WEB1))

    simulate(scenario())


def test_no_candidate_goes_by_two_names() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            shown: set[tuple[bool, frozenset[str]]] = set()

            def note(trip: Trip) -> bool:
                node = cluster.config.nodes[uuid]
                shown.add((node.master_candidate, names_in(cluster, "beta")))
                return False

            uuid = cluster.config.node(BETA).uuid
            cluster.network.faults.append(Failing(note))
            await cluster.run(RENAME)
            assert (False, frozenset({"beta", "bernd"})) in shown
            assert {names for is_candidate, names in shown if is_candidate} == {
                frozenset({"beta"}),
                frozenset({"bernd"}),
            }

    simulate(scenario())


def test_two_nodes_change_names_by_way_of_a_third() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            uuids = {name: cluster.config.node(name).uuid for name in (BETA, GAMMA)}
            for old, new in (("beta", "x"), ("gamma", "beta"), ("x", "gamma")):
                await cluster.run(RenameNode(node_name=NodeName(old), new_name=NodeName(new)))
            assert cluster.config.node(GAMMA).uuid == uuids[BETA]
            assert cluster.config.node(BETA).uuid == uuids[GAMMA]
            await cluster.take_over("beta")  # the machine, which is gamma by now
            assert cluster.config.master().name == "gamma"
            await cluster.start_master("beta")  # named by all nodes

    simulate(scenario())


def test_who_restarts_in_the_middle_is_one_of_both() -> None:
    """Wherever noded is killed, the node starts again, and is reached by the recorded name."""

    async def scenario(calls: int) -> bool:
        async with simulated_cluster(candidates=2) as cluster:
            seen = 0

            def is_it(trip: Trip) -> bool:
                nonlocal seen
                is_one = trip.target == "beta" and trip.call.service == "identity"
                seen += is_one
                return is_one and seen == calls

            cluster.network.faults.append(Failing(is_it))
            job = await cluster.finished(await cluster.submit(RENAME))
            cluster.network.faults.clear()
            await cluster.machines["beta"].kill_noded()
            await cluster.machines["beta"].start_noded()
            name = "bernd" if job.status is Status.SUCCESS else "beta"
            node = cluster.config.node(name)
            who = await cluster.master.running._around.nodes.service(Identity, node).who()
            assert who.node_uuid == node.uuid
            assert names_in(cluster, "beta") == {name}
            return job.status is Status.SUCCESS

    ended = [simulate(scenario(calls)) for calls in range(1, 8)]
    assert False in ended
    assert ended[-1]


def test_what_cannot_be_renamed_is_refused_and_nothing_is_done() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(ModifyNode(node_name=GAMMA, offline=True))
            before = await cluster.snapshot()

            async def refused(old: str, new: str, kind: type[GntError], words: str) -> None:
                with pytest.raises(kind, match=words):
                    await cluster.run(RenameNode(node_name=NodeName(old), new_name=NodeName(new)))

            await refused(ALPHA, "anna", Conflict, "alpha is the master.*master-failover")
            await refused(BETA, "gamma", Conflict, "There is a node gamma already")
            await refused(BETA, "beta", Conflict, "There is a node beta already")
            await refused(GAMMA, "georg", Conflict, "gamma is marked offline")
            await refused("delta", "d", NotFound, "delta")
            for bad in ("", "-x", "a b", "../x", "ü", "x" * 300):
                await refused(BETA, bad, InvalidRequest, ".")
            await cluster.lose_power("beta")
            await refused(BETA, "bernd", GntError, "beta")
            await cluster.machines["beta"].boot()
            assert not [
                line for line in before.differences(await cluster.snapshot()) if "boots" not in line
            ]

    simulate(scenario())
