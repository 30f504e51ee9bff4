"""Several instances whose places are chosen in one go, and that jobs of their own make or move."""

from typing import Any

import pytest

from common.errors import Conflict, GntError, NoCapacity
from common.model.template import DiskTemplate
from common.names import InstanceName, JobId, NodeId, NodeName
from coordinator.operations.cluster.verify_group import VerifyGroup
from coordinator.operations.instance.change_group import ChangeGroup
from coordinator.operations.instance.create_many import CreateInstances
from coordinator.operations.node.evacuate import EvacuateNode
from coordinator.operations.node.modify import ModifyNode
from tests.sim.many_at_once import OWN_MIB, allow_jobs, check_not_overcommitted, made, order, submit
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.faults import Slow
from tests.support.image import uuid_of


def test_room_for_those_evacuated_is_kept_at_a_take_over() -> None:
    """Their jobs wait in the queue, and more important ones would take the room before them."""

    async def scenario() -> None:
        async with simulated_cluster(nodes=3) as cluster:
            for machine in cluster.machines.values():
                machine.shrink_memory(OWN_MIB + 2048)
            places = ["alpha"] * 6 + ["beta"] * 6 + ["gamma"] * 2
            orders = [order(f"web{number}", pnode=node) for number, node in enumerate(places)]
            assert all(await made(cluster, await submit(cluster, orders)))
            await allow_jobs(cluster, 1)
            moves = (await cluster.run(EvacuateNode(node_name=NodeName("gamma"))))["jobs"]
            await cluster.crash_master()
            await cluster.take_over("beta")
            late = [order(f"late{number}", pnode="alpha") for number in range(2)]
            numbers = [await cluster.submit(each, priority=-10) for each in late]
            assert all(await made(cluster, [JobId(number) for _, number in moves]))
            assert sum(await made(cluster, numbers)) == 1
            await check_not_overcommitted(cluster)

    simulate(scenario())


def many(count: int, memory: int = 256, **fields: Any) -> CreateInstances:
    told = [
        {"instance_name": f"web{number}", "disk_template": "sharedfile",
         "disks": [{"size": "64M"}], "beparams": {"memory": memory}}
        for number in range(count)
    ]  # fmt: skip
    return CreateInstances(instances=tuple(told), **fields)


async def children(cluster: SimulatedCluster, result: Any) -> list[JobId]:
    assert all(good for good, _ in result["jobs"])
    return [JobId(number) for _, number in result["jobs"]]


def test_many_are_placed_in_one_go_and_made_by_jobs_of_their_own() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=3) as cluster:
            for machine in cluster.machines.values():
                machine.shrink_memory(OWN_MIB + 1025)
            result = await cluster.run(many(12))
            # Four fit on each node, and two nodes have to be able to take what is on three.
            assert result["allocatable"] == [f"web{number}" for number in range(8)]
            assert result["failed"] == [f"web{number}" for number in range(8, 12)]
            numbers = await children(cluster, result)
            late = await submit(cluster, [order(f"late{number}") for number in range(3)])
            assert await made(cluster, numbers) == [True] * 8
            assert await made(cluster, late) == [False] * 3
            await check_not_overcommitted(cluster)

    simulate(scenario())


def test_many_may_name_their_nodes_and_make_sense() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=3) as cluster:
            named = {"instance_name": "here", "disk_template": "diskless", "pnode": "gamma"}
            result = await cluster.run(CreateInstances(instances=(named,), iallocator="nope"))
            assert await made(cluster, await children(cluster, result)) == [True]
            assert cluster.config.instances_on(NodeId(uuid_of("gamma")))
            for bad, complaint in (
                ((), "Say which instances"),
                (({"instance_name": "x"},), "Instance 1 of the list"),
                ((named | {"instance_name": "x"},) * 2, "The instance x comes twice"),
                ((named,), "There is an instance here already"),
                ((named | {"instance_name": "x", "iallocator": "hail"},), "one for all"),
            ):
                with pytest.raises(GntError, match=complaint):
                    await cluster.run(CreateInstances(instances=bad))
            told = await cluster.run(many(1), dry_run=True)
            assert told[0].startswith("create web0 on ")

    simulate(scenario())


def test_what_many_were_promised_outlives_their_coordinator() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=3) as cluster:
            for machine in cluster.machines.values():
                machine.shrink_memory(OWN_MIB + 1025)
            await allow_jobs(cluster, 2)  # the others wait in the queue
            slow = Slow(lambda trip: trip.call.name == "disks.ensure_present", 20.0)
            cluster.network.faults.append(slow)
            numbers = await children(cluster, await cluster.run(many(8)))
            await cluster.settle(5.0)
            await cluster.crash_master()
            await cluster.take_over("beta")
            await allow_jobs(cluster, 50)
            late = await cluster.submit(order("late"), priority=-10)
            assert await made(cluster, [late, *numbers]) == [False, *[True] * 8]
            await check_not_overcommitted(cluster)

    simulate(scenario())


def test_the_room_of_a_job_that_is_cancelled_in_the_queue_is_free_again() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=3) as cluster:
            for machine in cluster.machines.values():
                machine.shrink_memory(OWN_MIB + 1025)
            await allow_jobs(cluster, 1)
            slow = Slow(lambda trip: trip.call.name == "disks.ensure_present", 20.0)
            cluster.network.faults.append(slow)
            numbers = await children(cluster, await cluster.run(many(8)))
            await cluster.master.luxi("CancelJob", numbers[-1])
            await allow_jobs(cluster, 50)
            assert await made(cluster, await submit(cluster, [order("late")])) == [True]
            assert await made(cluster, numbers[:-1]) == [True] * 7
            await check_not_overcommitted(cluster)

    simulate(scenario())


def test_a_node_is_evacuated_whatever_its_instances_do() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=3) as cluster:
            for number in range(6):
                await cluster.run(order(f"web{number}", pnode="gamma", start=number % 2 == 0))
            told = await cluster.run(EvacuateNode(node_name=NodeName("gamma")), dry_run=True)
            assert len(told) == 6
            result = await cluster.run(EvacuateNode(node_name=NodeName("gamma")))
            assert await made(cluster, await children(cluster, result)) == [True] * 6
            assert not cluster.config.instances_on(NodeId(uuid_of("gamma")))
            await check_not_overcommitted(cluster)
            assert await cluster.run(VerifyGroup(group_name="default")) is True
            assert await cluster.run(EvacuateNode(node_name=NodeName("gamma"))) == {"jobs": []}

    simulate(scenario())


def test_a_dead_node_is_evacuated() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=3) as cluster:
            await cluster.run(order("web1", pnode="gamma"))
            await cluster.lose_power("gamma")
            await cluster.run(ModifyNode(node_name=NodeName("gamma"), offline=True, force=True))
            result = await cluster.run(EvacuateNode(node_name=NodeName("gamma")))
            assert await made(cluster, await children(cluster, result)) == [True]
            assert not cluster.config.instances_on(NodeId(uuid_of("gamma")))

    simulate(scenario())


def test_what_cannot_leave_its_node_is_named() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=3) as cluster:
            await cluster.run(order("web1", pnode="gamma", disk_template=DiskTemplate.FILE))
            complaint = "iallocator 'hail': web1: Instances of type file cannot be relocated"
            with pytest.raises(NoCapacity, match=complaint):
                await cluster.run(EvacuateNode(node_name=NodeName("gamma")))
            with pytest.raises(Conflict, match="There is one group of nodes only"):
                await cluster.run(ChangeGroup(instance_name=InstanceName("web1")))

    simulate(scenario())
