"""What only the one who was told it may know: it is on no disk and in no list, and may be lost."""

from pathlib import Path

import pytest

from common.errors import Conflict, GntError
from common.model.job import Job, Status
from common.names import NodeName
from coordinator.operations.node.add import AddNode
from coordinator.operations.test.delay import Delay
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.faults import Mishap, Once, Trap
from tests.support.image import ip_of
from tests.support.network import Trip


def add_delta(cluster: SimulatedCluster) -> AddNode:
    token = str(cluster.machines["delta"].token)
    return AddNode(node_name=NodeName("delta"), primary_ip=ip_of("delta"), token=token)


def files_with(cluster: SimulatedCluster, token: str) -> list[Path]:
    """Return the files of the candidates in which a token can be found, deleted or not."""
    return [
        path
        for name in ("alpha", "beta", "gamma")
        for path in sorted(cluster.machines[name].paths.root.rglob("*"))
        if path.is_file() and token.encode() in path.read_bytes()
    ]


def is_request(trip: Trip) -> bool:
    return trip.call.name == "join.request"


def check_was_lost(job: Job) -> None:
    failure = job.ops[0].failure
    assert job.status is Status.ERROR
    assert failure is not None
    assert failure.code == Conflict.code
    assert "token" in failure.message
    assert failure.message.endswith("Give the command again.")


def test_the_token_of_an_add_that_failed_is_on_no_disk() -> None:
    async def scenario() -> None:
        async with simulated_cluster(strangers=1) as cluster:
            token = str(cluster.machines["delta"].token)
            fault = Once(is_request, 0, Mishap.FAILS_AFTER, cluster.restart_noded)
            cluster.network.faults.append(fault)
            with pytest.raises(GntError, match="Injected"):
                await cluster.run(add_delta(cluster))
            assert str(cluster.machines["delta"].token) == token, "it would not open the node"
            assert files_with(cluster, token) == []

    simulate(scenario())


def test_the_token_of_an_add_that_waits_is_on_no_disk_and_in_no_list() -> None:
    async def scenario() -> None:
        async with simulated_cluster(strangers=1) as cluster:
            token = str(cluster.machines["delta"].token)
            delay = await cluster.submit(Delay(duration=60.0))
            number = await cluster.submit(add_delta(cluster), depends=[[delay, []]])
            await cluster.settle(10.0)
            assert files_with(cluster, token) == []
            (shown,) = await cluster.master.luxi("QueryJobs", [number], ["ops"])
            assert token not in str(shown)
            assert shown[0][0]["token"] == "<secret>"
            assert (await cluster.finished(number)).status is Status.SUCCESS
            assert files_with(cluster, token) == []

    simulate(scenario())


def test_an_add_that_waits_while_the_coordinator_ends_has_to_be_given_again() -> None:
    async def scenario() -> None:
        async with simulated_cluster(strangers=1) as cluster:
            delay = await cluster.submit(Delay(duration=60.0))
            number = await cluster.submit(add_delta(cluster), depends=[[delay, []]])
            await cluster.crash_master()
            await cluster.start_master("alpha")
            check_was_lost(await cluster.finished(number))
            await cluster.run(add_delta(cluster))
            assert cluster.config.find_node("delta")

    simulate(scenario())


def test_an_add_that_lost_its_token_before_the_node_had_joined_is_undone() -> None:
    async def scenario() -> None:
        async with simulated_cluster(strangers=1) as cluster:
            trap = Trap(is_request, 0, cluster.master.die)
            cluster.network.faults.append(trap)
            number = await cluster.submit(add_delta(cluster))
            await trap.sprung.wait()
            await cluster.crash_master()
            await cluster.take_over("beta")
            check_was_lost(await cluster.finished(number))
            assert cluster.config.find_node("delta") is None
            await cluster.run(add_delta(cluster))
            assert cluster.config.find_node("delta")

    simulate(scenario())
