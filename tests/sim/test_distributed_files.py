"""Files of the master's that are to be the same on all nodes, and what all nodes know."""

import pytest

from common.errors import InvalidRequest, NodeFailure
from common.model.job import Status
from common.names import NodeName
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.cluster.redist_conf import RedistConf
from coordinator.operations.cluster.verify_group import VerifyGroup
from coordinator.operations.node.add import AddNode
from coordinator.operations.node.modify import ModifyNode
from tests.sim.members import add_delta
from tests.sim.settings import DISTRIBUTED, GAMMA, distribute
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.faults import Trap
from tests.support.image import ip_of
from tests.support.network import Trip

MODIFY = ModifyCluster(distributed_files=(DISTRIBUTED,))
CODES = ("ECLUSTERFILECHECK", "ENODEFILECHECK")
VERIFY = VerifyGroup(group_name="default", findings=True)


def texts(cluster: SimulatedCluster) -> dict[str, str]:
    """Return the file as it is on each machine that has it."""
    places = {n: m.paths.root / DISTRIBUTED[1:] for n, m in cluster.machines.items()}
    return {name: place.read_text() for name, place in places.items() if place.exists()}


async def found(cluster: SimulatedCluster) -> list[str]:
    told = await cluster.run(VERIFY)
    return [each["name"] for each in told if each["code"] in CODES]


def test_all_nodes_get_the_masters_file_and_verify_tells_who_has_another() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            distribute(cluster)
            await cluster.run(MODIFY)
            assert await found(cluster) == ["beta", "gamma"]
            await cluster.run(RedistConf())
            assert texts(cluster) == dict.fromkeys(("alpha", "beta", "gamma"), "[global]\n")
            assert await found(cluster) == []
            (cluster.machines["gamma"].paths.root / DISTRIBUTED[1:]).write_text("another")
            assert await found(cluster) == ["gamma"]
            await cluster.take_over("beta")
            await cluster.run(RedistConf())
            assert await found(cluster) == []

    simulate(scenario())


def test_a_node_that_does_not_allow_it_keeps_no_other_from_its_copy() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            distribute(cluster)
            cluster.machines["beta"].paths.remote_rules.unlink()
            await cluster.run(MODIFY)
            job = await cluster.finished(await cluster.submit(RedistConf()))
            assert job.status is Status.SUCCESS
            assert any("beta has not got /etc/ceph" in entry.message for entry in job.ops[0].log)
            assert texts(cluster) == dict.fromkeys(("alpha", "gamma"), "[global]\n")

    simulate(scenario())


def test_it_is_the_file_of_who_was_master_when_that_was_asked_for() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            distribute(cluster)
            await cluster.run(MODIFY)
            (cluster.machines["beta"].paths.root / DISTRIBUTED[1:]).write_text("another")
            trap = Trap(_publishes, 0, cluster.master.die)
            cluster.network.faults.append(trap)
            number = await cluster.submit(RedistConf())
            await trap.until_sprung()
            await cluster.crash_master()
            await cluster.take_over("beta")
            assert (await cluster.finished(number)).status is Status.SUCCESS
            assert texts(cluster) == dict.fromkeys(("alpha", "beta", "gamma"), "[global]\n")

    simulate(scenario())


def _publishes(trip: Trip) -> bool:
    return trip.is_of_a_job and trip.call.name == "files.publish"


def test_a_node_that_comes_or_comes_back_gets_the_files_if_it_allows_that() -> None:
    async def scenario() -> None:
        async with simulated_cluster(strangers=2, candidates=2) as cluster:
            distribute(cluster)
            cluster.machines["epsilon"].paths.remote_rules.unlink()
            await cluster.run(MODIFY)
            await cluster.run(add_delta(cluster))
            assert texts(cluster) == dict.fromkeys(("alpha", "delta"), "[global]\n")
            await cluster.run(ModifyNode(node_name=GAMMA, offline=True))
            await cluster.run(ModifyNode(node_name=GAMMA, offline=False))
            assert texts(cluster) == dict.fromkeys(("alpha", "delta", "gamma"), "[global]\n")
            epsilon = AddNode(
                node_name=NodeName("epsilon"), primary_ip=ip_of("epsilon"),
                token=str(cluster.machines["epsilon"].token),
            )  # fmt: skip
            job = await cluster.finished(await cluster.submit(epsilon))
            assert job.status is Status.SUCCESS
            assert any("epsilon has not got /etc/ceph" in entry.message for entry in job.ops[0].log)

    simulate(scenario())


def test_what_a_node_has_lost_of_the_cluster_is_told_again() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.settle()
            file = cluster.machines["gamma"].paths.ssconf / "master_node"
            file.unlink()
            assert await found(cluster) == ["gamma"]
            await cluster.run(RedistConf())
            assert file.read_text() == "alpha\n"
            assert await found(cluster) == []

    simulate(scenario())


def test_contents_are_in_no_row_of_the_state() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            distribute(cluster, "key = very-secret-word")
            await cluster.run(MODIFY)
            await cluster.run(RedistConf())
            for machine in cluster.machines.values():
                for file in machine.paths.state.rglob("*sqlite*"):
                    assert b"very-secret-word" not in file.read_bytes()

    simulate(scenario())


@pytest.mark.parametrize("path", ["etc/hosts", "/etc/../shadow", "/etc/", "", "/a//b"])
def test_what_is_no_plain_path_is_refused(path: str) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            with pytest.raises(InvalidRequest, match="a plain one from /"):
                await cluster.run(ModifyCluster(distributed_files=(path,)))

    simulate(scenario())


def test_a_file_that_the_master_lacks_or_may_not_read_is_named() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(MODIFY)
            with pytest.raises(NodeFailure, match=r"/etc/ceph/ceph\.conf may not be put"):
                await cluster.run(RedistConf())
            distribute(cluster)
            (cluster.machines["alpha"].paths.root / DISTRIBUTED[1:]).unlink()
            with pytest.raises(InvalidRequest, match=r"alpha has no /etc/ceph/ceph\.conf"):
                await cluster.run(RedistConf())

    simulate(scenario())
