"""Guests of which half of the memory is on either node, and what operators do with them.

No half is ended while the guest can go on, but by force; what is lost with a node is started anew.
"""

import pytest

from common.errors import Conflict
from common.model.job import Status
from common.names import InstanceId
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.reboot import RebootInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.node.modify import ModifyNode
from tests.sim.by_post_copy import CLEANUP, SOURCE, TARGET, counts, halve
from tests.sim.settings import BETA, GAMMA, WEB1, create, mirrored
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.seeds import seeds


def test_guest_that_hangs_for_what_it_lacks_is_given_another_line_by_a_cleanup() -> None:
    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            uuid = await _cut_in_half(cluster)
            cluster.machines[TARGET].guests.touch_rest(uuid)
            await cluster.run(CLEANUP)
            assert cluster.config.instance("web1").maybe_on == ()
            await counts(cluster, TARGET, uuid)

    simulate(scenario())


ANY_DISKS = pytest.mark.parametrize(
    "order", [create("web1", SOURCE), mirrored("web1", SOURCE, TARGET)], ids=["shared", "mirrored"]
)


@ANY_DISKS
def test_what_its_dead_target_has_lost_is_started_where_half_of_it_is(
    order: CreateInstance,
) -> None:
    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            uuid = await _lose_target(cluster, order)
            await cluster.run(FailOverInstance(instance_name=WEB1, target_node=SOURCE))
            await counts(cluster, SOURCE, uuid)
            assert cluster.config.instance("web1").maybe_on == ()

    simulate(scenario())


@ANY_DISKS
def test_what_its_dead_target_has_lost_is_started_anywhere_once_settled(
    order: CreateInstance,
) -> None:
    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            uuid = await _lose_target(cluster, order)
            await cluster.run(CLEANUP)
            assert cluster.config.instance("web1").maybe_on == ()
            assert not cluster.machines[SOURCE].guests.has(uuid)
            await cluster.run(FailOverInstance(instance_name=WEB1, target_node="alpha"))
            await counts(cluster, "alpha", uuid)

    simulate(scenario())


def test_what_its_dead_source_has_lost_is_ended_and_started_anew() -> None:
    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            uuid, number = await halve(cluster)
            await cluster.lose_power(SOURCE)
            assert (await cluster.finished(number)).status is Status.ERROR
            await cluster.run(ModifyNode(node_name=BETA, offline=True, force=True))
            with pytest.raises(Conflict, match="“gnt-instance shutdown --force web1” ends it"):
                await cluster.run(CLEANUP)
            await cluster.run(ShutDownInstance(instance_name=WEB1, force=True))
            await cluster.run(StartInstance(instance_name=WEB1))
            await counts(cluster, TARGET, uuid)

    simulate(scenario())


def test_half_of_a_guest_is_not_asked_to_power_off_before_the_rest_has_come() -> None:
    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            uuid = await _cut_in_half(cluster, mirrored("web1", SOURCE, TARGET))
            with pytest.raises(Conflict, match=r"on two nodes still.*--cleanup web1"):
                await cluster.run(ShutDownInstance(instance_name=WEB1))
            await cluster.run(CLEANUP)
            await counts(cluster, TARGET, uuid)
            await cluster.run(ShutDownInstance(instance_name=WEB1))
            assert not any(machine.guests.has(uuid) for machine in cluster.machines.values())

    simulate(scenario())


def test_half_of_a_guest_is_not_stopped_to_be_booted_anew() -> None:
    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            uuid = await _cut_in_half(cluster, mirrored("web1", SOURCE, TARGET))
            with pytest.raises(Conflict, match="may be on beta or gamma"):
                await cluster.run(RebootInstance(instance_name=WEB1))
            await cluster.run(CLEANUP)
            await counts(cluster, TARGET, uuid)
            await cluster.run(RebootInstance(instance_name=WEB1))
            await counts(cluster, TARGET, uuid)

    simulate(scenario())


def test_half_of_a_guest_is_ended_on_both_nodes_by_force() -> None:
    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            uuid = await _cut_in_half(cluster, mirrored("web1", SOURCE, TARGET))
            await cluster.run(ShutDownInstance(instance_name=WEB1, force=True))
            assert not any(machine.guests.has(uuid) for machine in cluster.machines.values())
            assert cluster.config.instance("web1").maybe_on == ()

    simulate(scenario())


async def _cut_in_half(
    cluster: SimulatedCluster, order: CreateInstance | None = None
) -> InstanceId:
    """Leave web1 running on the target without a part of its memory; the network is back."""
    uuid, number = await halve(cluster, order)
    cluster.cut(SOURCE, TARGET)
    assert (await cluster.finished(number)).status is Status.ERROR
    cluster.heal()
    return uuid


async def _lose_target(cluster: SimulatedCluster, order: CreateInstance) -> InstanceId:
    """Leave a part of its memory on the source, and nothing of web1 anywhere else."""
    uuid, number = await halve(cluster, order)
    await cluster.lose_power(TARGET)
    assert (await cluster.finished(number)).status is Status.ERROR
    await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
    return uuid
