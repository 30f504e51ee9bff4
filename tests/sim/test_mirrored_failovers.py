"""Failing over to the second copy of a disk: with which, without which, and what if it breaks."""

import asyncio
from dataclasses import dataclass

import pytest

from common.errors import Conflict, GntError, NodeFailure
from common.model.job import Status
from common.names import JobId, NodeName
from common.rpc.server import Reply, refusal
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.reboot import RebootInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.node.evacuate import EvacuateNode
from coordinator.operations.node.failover import FailOverNode
from coordinator.operations.node.migrate import MigrateNode
from tests.sim.mirrored_pair import attached, behind, bring_back, guests, homes, lose, tell
from tests.sim.settings import BETA, GAMMA, WEB1, mirrored
from tests.support.cluster import SimulatedCluster, outcome
from tests.support.faults import Watching
from tests.support.image import GROUP
from tests.support.network import Fault, Trip


def test_it_survives_its_primary_node() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await lose(cluster, GAMMA)
        await cluster.run(FailOverInstance(instance_name=WEB1))
        assert homes(cluster) == ["beta", "gamma"]
        assert await guests(cluster) == {"beta": {"web1": "running"}}
        assert behind(cluster) == ["gamma"]

    tell(story)


def test_nobody_looks_at_volumes_while_a_guest_of_a_dead_node_is_waited_for() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await lose(cluster, GAMMA)
        asked = Watching(lambda trip: trip.call.name in ("disks.find", "facts.facts"))
        cluster.network.faults.append(asked)
        await cluster.run(FailOverInstance(instance_name=WEB1))
        assert [(trip.call.name, trip.body) for trip in asked.seen] == [("facts.facts", b"{}")]

    tell(story)


def test_nobody_looks_at_volumes_while_a_guest_is_stopped_to_be_failed_over() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        asked = Watching(lambda trip: trip.call.name == "disks.find")
        cluster.network.faults.append(asked)
        await cluster.run(FailOverInstance(instance_name=WEB1))
        assert asked.seen == []
        assert await guests(cluster) == {"beta": {"web1": "running"}}

    tell(story)


def test_a_stopped_instance_is_not_failed_over_to_where_its_volumes_are_gone() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await lose(cluster, GAMMA)
        cluster.machines["beta"].volumes.groups[GROUP].volumes.clear()
        with pytest.raises(NodeFailure, match="Disk 0 of web1 is missing on beta, and the other"):
            await cluster.run(FailOverInstance(instance_name=WEB1))

    tell(story, start=False)


def test_a_guest_is_not_stopped_for_a_copy_whose_volumes_are_gone_though_its_device_is_there() -> (
    None
):
    async def story(cluster: SimulatedCluster) -> None:
        (disk,) = cluster.config.disks_of(cluster.config.instance("web1"))
        cluster.machines["beta"].drbd.fail_volumes(f"gantry-{disk.uuid}")
        cluster.machines["beta"].volumes.groups[GROUP].volumes.clear()
        with pytest.raises(NodeFailure, match="disk 0 is missing there"):
            await cluster.run(RebootInstance(instance_name=WEB1))
        assert await guests(cluster) == {"gamma": {"web1": "running"}}

    tell(story)


@dataclass
class StartFails(Fault):
    """A guest is told not to start that has, and has written to one copy alone."""

    cluster: SimulatedCluster
    node: str

    async def coming(self, trip: Trip, reply: Reply) -> Reply:
        if (trip.target, trip.call.name) != (self.node, "instances.ensure_running"):
            return reply
        self.cluster.cut("gamma", "beta")
        await self.cluster.settle(5.0)
        self.cluster.pairs.settle()
        return refusal(NodeFailure("It does not start."))


def test_what_a_start_that_fails_has_written_alone_is_known_when_its_node_is_lost() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster.network.faults.append(StartFails(cluster, "gamma"))
        job = await cluster.finished(await cluster.submit(StartInstance(instance_name=WEB1)))
        assert job.status is Status.ERROR
        assert (await guests(cluster), behind(cluster)) == ({}, ["beta"])
        await lose(cluster, GAMMA)
        with pytest.raises(Conflict, match="disk 0 is known to be behind"):
            await cluster.run(FailOverInstance(instance_name=WEB1))

    tell(story, start=False)


def test_what_a_guest_has_written_on_the_target_is_not_given_up_on_the_way_back() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster.network.faults.append(StartFails(cluster, "beta"))
        job = await cluster.finished(await cluster.submit(FailOverInstance(instance_name=WEB1)))
        assert job.status is Status.ERROR
        assert await guests(cluster) == {}
        assert behind(cluster) == ["gamma"]
        with pytest.raises(GntError):
            await cluster.run(StartInstance(instance_name=WEB1))

    tell(story)


def test_a_copy_that_was_away_is_not_failed_over_to() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await lose(cluster, BETA)
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        await cluster.run(StartInstance(instance_name=WEB1))
        assert behind(cluster) == ["beta"]
        await bring_back(cluster, BETA)
        await lose(cluster, GAMMA)
        with pytest.raises(Conflict, match=r"disk 0 is known to be behind.*--ignore-consistency"):
            await cluster.run(FailOverInstance(instance_name=WEB1))

    tell(story)


def test_a_copy_that_has_not_seen_the_other_since_its_node_came_back_is_not_trusted() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.lose_power("beta")
        await cluster.machines["beta"].boot()
        await lose(cluster, GAMMA)
        with pytest.raises(Conflict, match=r"may lack what was written last: disk 0 is not set up"):
            await cluster.run(FailOverInstance(instance_name=WEB1))

    tell(story)


def test_an_operator_may_take_an_old_copy_and_knows_what_that_costs() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await lose(cluster, BETA)
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        await cluster.run(StartInstance(instance_name=WEB1))
        await bring_back(cluster, BETA)
        await lose(cluster, GAMMA)
        await cluster.run(FailOverInstance(instance_name=WEB1, ignore_consistency=True))
        assert (homes(cluster), behind(cluster)) == (["beta", "gamma"], ["gamma"])
        assert await guests(cluster) == {"beta": {"web1": "running"}}

    tell(story)


def test_it_is_failed_over_at_once_though_its_node_has_not_been_missed_yet() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await lose(cluster, GAMMA)
        assert any(end.link == "connected" for end in cluster.pairs.ends)
        await cluster.run(FailOverInstance(instance_name=WEB1))
        assert await guests(cluster) == {"beta": {"web1": "running"}}
        assert behind(cluster) == ["gamma"]

    tell(story)


def test_it_is_not_stopped_for_a_copy_that_has_not_noticed_that_it_misses_writes() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster.cut("gamma", "beta")
        await cluster.settle(3.0)
        with pytest.raises(Conflict, match=r"disk 0 on gamma is up to date, and not reaching"):
            await cluster.run(FailOverInstance(instance_name=WEB1))
        assert await guests(cluster) == {"gamma": {"web1": "running"}}
        await cluster.run(FailOverInstance(instance_name=WEB1, ignore_consistency=True))
        assert await guests(cluster) == {"beta": {"web1": "running"}}
        assert behind(cluster) == ["gamma"]

    tell(story)


async def until_neither_is_primary(cluster: SimulatedCluster, job: JobId) -> None:
    """Return in the moment between two nodes using a disk, while a job takes it to the other."""
    while any(end.primary for end in cluster.pairs.ends):
        assert not cluster.state.jobs[job].status.is_final, "that moment was missed"
        await asyncio.sleep(0.0001)


def test_it_runs_again_where_it_was_if_the_link_is_lost_while_it_is_failed_over() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        job = await cluster.submit(FailOverInstance(instance_name=WEB1))
        await until_neither_is_primary(cluster, job)
        cluster.cut("gamma", "beta")
        assert (await cluster.finished(job)).status is Status.ERROR
        assert await guests(cluster) == {"gamma": {"web1": "running"}}
        assert (homes(cluster), behind(cluster)) == (["gamma", "beta"], ["beta"])

    tell(story)


def test_it_runs_again_where_it_was_if_the_target_dies_while_it_is_failed_over() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        job = await cluster.submit(FailOverInstance(instance_name=WEB1))
        await until_neither_is_primary(cluster, job)
        await cluster.lose_power("beta")
        assert (await cluster.finished(job)).status is Status.ERROR
        assert await guests(cluster) == {"gamma": {"web1": "running"}}
        assert (homes(cluster), behind(cluster)) == (["gamma", "beta"], ["beta"])

    tell(story)


async def all_done(cluster: SimulatedCluster, result: object) -> None:
    """Wait for the jobs that an operation has left to others."""
    assert isinstance(result, dict)
    for accepted, number in result["jobs"]:
        assert accepted, number
        outcome(await cluster.finished(number))


def test_a_node_is_left_by_all_its_instances() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(mirrored("web2", "gamma", "alpha", start=False))
        await all_done(cluster, await cluster.run(MigrateNode(node_name=GAMMA)))
        assert await guests(cluster) == {"beta": {"web1": "running"}}
        config = cluster.config
        at = {i.name: config.nodes[i.primary_node].name for i in config.instances.values()}
        assert at == {"web1": "beta", "web2": "alpha"}
        await all_done(cluster, await cluster.run(FailOverNode(node_name=BETA)))
        assert await guests(cluster) == {"gamma": {"web1": "running"}}

    tell(story)


def test_a_node_is_evacuated_of_what_is_mirrored_there() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        evacuation = EvacuateNode(node_name=BETA, secondary_only=True, remote_node="delta")
        await all_done(cluster, await cluster.run(evacuation))
        assert homes(cluster) == ["gamma", "delta"]
        evacuation = EvacuateNode(node_name=NodeName("delta"), secondary_only=True)
        await all_done(cluster, await cluster.run(evacuation))
        assert homes(cluster)[0] == "gamma"
        assert homes(cluster)[1] in ("alpha", "beta")
        await all_done(cluster, await cluster.run(EvacuateNode(node_name=GAMMA)))
        assert "gamma" not in homes(cluster)
        assert attached(cluster).keys() == set(homes(cluster))

    tell(story, nodes=4)
