"""Copies of disks are made anew: when an operator says so, and by itself where that is allowed."""

import pytest

from common.errors import Cancelled, Conflict, NoCapacity
from common.model.disk_parameters import DrbdParameters
from common.model.job import Job, Status
from common.model.template import DiskTemplate
from common.names import JobId, MiB
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.replace_disks import ReplaceDisks
from coordinator.operations.instance.startup import StartInstance
from tests.sim.mirrored_pair import attached, behind, bring_back, guests, homes, lose, tell
from tests.sim.settings import BETA, WEB1, create, disk
from tests.sim.test_watcher import at_rest, watch
from tests.support.cluster import SimulatedCluster, outcome
from tests.support.image import GROUP


async def copying(cluster: SimulatedCluster) -> JobId:
    """Have the secondary node replaced, and return the job once it copies."""
    job = await cluster.submit(ReplaceDisks(instance_name=WEB1, remote_node="delta"))
    while not any(end.copying == "from-peer" for end in cluster.pairs.ends):
        await cluster.settle(0.05)
        cluster.pairs.settle()
    return job


def test_a_replacement_that_is_cancelled_leaves_the_old_copy() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        for end in cluster.pairs.ends:
            end.rate_kib = 64
        job = await copying(cluster)
        await cluster.master.luxi("CancelJob", job)
        with pytest.raises(Cancelled):
            outcome(await cluster.finished(job))
        assert homes(cluster) == ["gamma", "beta"]
        assert attached(cluster) == {"gamma": ["sole"], "beta": ["standby"]}
        assert await guests(cluster) == {"gamma": {"web1": "running"}}
        assert cluster.machines["delta"].local_disks == []

    tell(story, nodes=4)


def test_a_new_secondary_node_that_dies_while_it_is_copied_to_costs_no_copy() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        job = await copying(cluster)
        await cluster.lose_power("delta")
        ended = await cluster.finished(job)
        assert ended.status is Status.ERROR
        assert homes(cluster) == ["gamma", "beta"]
        assert await guests(cluster) == {"gamma": {"web1": "running"}}

    tell(story, nodes=4)


def test_copies_whose_volumes_fail_are_replaced_where_they_are_while_the_guest_runs() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        (disk,) = cluster.config.disks_of(cluster.config.instance("web1"))
        cluster.machines["gamma"].drbd.fail_volumes(f"gantry-{disk.uuid}")
        await cluster.run(ReplaceDisks(instance_name=WEB1, auto=True))
        assert all(end.has_good_copy for end in cluster.pairs.ends)
        assert (homes(cluster), behind(cluster)) == (["gamma", "beta"], [])
        assert attached(cluster) == {"gamma": ["sole"], "beta": ["standby"]}

    tell(story)


def test_new_copies_beside_old_ones_need_space_that_is_promised_to_nobody() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        group = cluster.machines["beta"].volumes.groups[GROUP]
        group.capacity = MiB(2 * (64 + 128) - 1)
        order = ReplaceDisks(instance_name=WEB1, on_secondary=True)
        with pytest.raises(NoCapacity, match=r"beta has 191 MiB left in .* for new copies"):
            await cluster.run(order)
        group.capacity = MiB(2 * (64 + 128) + 63)
        other = create("web2", "beta", template=DiskTemplate.PLAIN, start=False)
        number = await cluster.submit(order)
        while not cluster.state.jobs[number].ops[0].plan:
            await cluster.settle(0.01)
        with pytest.raises(NoCapacity, match="beta has 63 MiB left"):  # though none is made yet
            await cluster.run(other)
        assert outcome(await cluster.finished(number)) is None
        await cluster.run(other)

    tell(story)


def test_the_last_good_copy_is_not_replaced() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await lose(cluster, BETA)
        await cluster.run(StartInstance(instance_name=WEB1))
        await bring_back(cluster, BETA)
        with pytest.raises(Conflict, match=r"copies of web1 on beta would be the only ones"):
            await cluster.run(ReplaceDisks(instance_name=WEB1, on_primary=True))

    tell(story)


def test_the_disk_whose_copy_is_not_good_is_told_by_its_number() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        more = ModifyInstance(instance_name=WEB1, disks=(disk("add", size=32),), hotplug=True)
        await cluster.run(more)
        _, second = cluster.config.disks_of(cluster.config.instance("web1"))
        cluster.machines["beta"].drbd.fail_volumes(f"gantry-{second.uuid}")
        with pytest.raises(Conflict, match="would be the only ones, and disk 1 there"):
            await cluster.run(ReplaceDisks(instance_name=WEB1, on_primary=True, disks=(1,)))

    tell(story)


def test_nothing_is_replaced_where_nothing_is_faulty() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        before = await cluster.snapshot()
        await cluster.run(ReplaceDisks(instance_name=WEB1, auto=True))
        assert not before.differences(await cluster.snapshot())

    tell(story)


async def lose_its_device(cluster: SimulatedCluster, node: str) -> None:
    (disk,) = cluster.config.disks_of(cluster.config.instance("web1"))
    cluster.machines[node].physical.lose(f"/dev/{GROUP}")
    cluster.machines[node].drbd.fail_volumes(f"gantry-{disk.uuid}")


def repairs(cluster: SimulatedCluster) -> list[Job]:
    """Return the jobs that looked whether storage can be repaired."""
    jobs = cluster.state.jobs.values()
    return [job for job in jobs if job.ops[0].input["OP_ID"] == "OP_GROUP_REPAIR_STORAGE"]


def test_a_node_that_loses_a_device_is_repaired_if_the_operator_has_allowed_it() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await lose_its_device(cluster, "gamma")
        await watch(cluster)
        await at_rest(cluster)
        assert not all(end.has_good_copy for end in cluster.pairs.ends), "nobody has allowed it"
        await cluster.run(ModifyCluster(self_repair=True))
        told = await watch(cluster)
        assert any("copies of mirrored disks have lost their volumes" in t.text for t in told)
        await at_rest(cluster)
        await at_rest(cluster)  # of what it has found
        assert all(end.has_good_copy for end in cluster.pairs.ends)
        assert await guests(cluster) == {"gamma": {"web1": "running"}}
        assert (homes(cluster), behind(cluster)) == (["gamma", "beta"], [])
        assert not any("lost" in each.text for each in await watch(cluster))

    tell(story)


def test_several_nodes_that_lose_devices_at_once_are_left_to_an_operator() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ModifyCluster(self_repair=True))
        await lose_its_device(cluster, "gamma")
        cluster.machines["alpha"].physical.lose(f"/dev/{GROUP}")
        before = {n: m.physical.told for n, m in cluster.machines.items()}
        await watch(cluster)
        await at_rest(cluster)
        assert {n: m.physical.told for n, m in cluster.machines.items()} == before
        (looked,) = [
            job for job in cluster.state.jobs.values() if "OP_GROUP_REPAIR" in str(job.ops)
        ]
        assert any("alpha, gamma" in entry.message for entry in looked.ops[0].log)
        await watch(cluster)  # and is not asked again at once
        await at_rest(cluster)
        assert len(repairs(cluster)) == 1

    tell(story)


def test_a_job_that_waits_for_a_short_copying_soon_sees_that_it_has_ended() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        disks = cluster.config.disks_of(cluster.config.instance("web1"))
        copying_s = sum(disk.size for disk in disks) * 1024 / DrbdParameters().resync_rate
        assert 1 < copying_s < 1.1  # as much of a second again would be the longest pause
        began_s = cluster.now()
        await cluster.run(ReplaceDisks(instance_name=WEB1, on_secondary=True))
        assert cluster.now() - began_s < copying_s + 0.5

    tell(story)
