"""Instances whose disks are on two nodes: where they go, and which copy counts."""

import asyncio
import re
from collections.abc import Awaitable, Callable

import pytest

from common.errors import Cancelled, Conflict, NoCapacity, NodeFailure
from common.model.disk import DrbdBacking
from common.model.job import Job, Status
from common.model.template import DiskTemplate
from common.names import JobId, MiB, NodeName
from common.noderpc.mirrors import Parted
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.cluster.verify_group import VerifyGroup
from coordinator.operations.group.verify_disks import VerifyDisksOfGroup
from coordinator.operations.instance.activate_disks import ActivateDisks
from coordinator.operations.instance.discard_copy import DiscardCopy
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.instance.replace_disks import ReplaceDisks
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.node.evacuate import EvacuateNode
from coordinator.operations.node.failover import FailOverNode
from coordinator.operations.node.migrate import MigrateNode
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.node.remove import RemoveNode
from tests.sim.settings import BETA, GAMMA, WEB1, create, mirrored
from tests.sim.test_watcher import at_rest, watch
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, outcome, simulated_cluster
from tests.support.faults import Slow
from tests.support.image import GROUP


def tell(
    story: Callable[[SimulatedCluster], Awaitable[None]], *, start: bool = True, nodes: int = 3
) -> None:
    """Begin with web1 running on gamma, its disk on beta, too."""

    async def scenario() -> None:
        async with simulated_cluster(nodes=nodes, candidates=1) as cluster:
            await cluster.run(mirrored(start=start))
            await story(cluster)
            assert not cluster.pairs.lost, "what was acknowledged is gone"

    simulate(scenario())


def homes(cluster: SimulatedCluster) -> list[str]:
    config = cluster.config
    return [config.nodes[uuid].name for uuid in config.nodes_of(config.instance("web1"))]


def behind(cluster: SimulatedCluster) -> list[str]:
    config = cluster.config
    (disk,) = config.disks_of(config.instance("web1"))
    return [config.nodes[uuid].name for uuid in disk.behind]


def attached(cluster: SimulatedCluster) -> dict[str, list[str]]:
    every = cluster.machines.items()
    return {name: list(machine.attached.values()) for name, machine in every if machine.attached}


async def guests(cluster: SimulatedCluster) -> dict[str, dict[str, str]]:
    found = (await cluster.snapshot()).guests
    return {node: has for node, has in found.items() if has}


async def lose(cluster: SimulatedCluster, node: NodeName) -> None:
    await cluster.lose_power(node)
    await cluster.run(ModifyNode(node_name=node, offline=True, force=True))


async def bring_back(cluster: SimulatedCluster, node: NodeName) -> None:
    await cluster.machines[node].boot()
    await cluster.run(ModifyNode(node_name=node, offline=False))


def test_both_copies_are_made_at_the_same_time() -> None:
    async def scenario() -> None:
        async with simulated_cluster(candidates=1) as cluster:
            makes = Slow(lambda trip: trip.call.name == "disks.ensure_present", 10.0)
            cluster.network.faults.append(makes)
            began = cluster.now()
            await cluster.run(mirrored(start=False))
            assert 20 <= cluster.now() - began < 30, "there and back, once"

    simulate(scenario())


def test_it_moves_to_its_secondary_node_and_back() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        assert homes(cluster) == ["gamma", "beta"]
        assert attached(cluster) == {"gamma": ["sole"], "beta": ["standby"]}
        await cluster.run(MigrateInstance(instance_name=WEB1))
        assert homes(cluster) == ["beta", "gamma"]
        assert attached(cluster) == {"gamma": ["standby"], "beta": ["sole"]}
        assert not any(end.allows_two for end in cluster.pairs.ends)
        await cluster.run(FailOverInstance(instance_name=WEB1))
        assert homes(cluster) == ["gamma", "beta"]
        assert attached(cluster) == {"gamma": ["sole"], "beta": ["standby"]}

    tell(story)


def test_two_made_at_once_have_devices_of_their_own() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        jobs = [await cluster.submit(mirrored(name, "gamma", "beta")) for name in ("a", "b", "c")]
        for job in jobs:
            outcome(await cluster.finished(job))
        backings = [disk.backing for disk in cluster.config.disks.values()]
        for node in cluster.config.nodes.values():
            numbers = [b.minors.get(node.uuid) for b in backings if isinstance(b, DrbdBacking)]
            taken = [number for number in numbers if number is not None]
            assert len(set(taken)) == len(taken)
        ports = [backing.port for backing in backings if isinstance(backing, DrbdBacking)]
        assert sorted(ports) == [11000, 11001, 11002, 11003]

    tell(story)


def test_it_migrates_to_any_node_and_its_copy_follows() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ModifyCluster(diskparams={"drbd": {"resync-rate": 4096}}))  # 16 s
        job = await cluster.submit(MigrateInstance(instance_name=WEB1, target_node="alpha"))
        while await guests(cluster) != {"alpha": {"web1": "running"}}:
            await cluster.settle(0.05)
        assert behind(cluster) == ["alpha"], "it has waited for its copy"
        assert outcome(await cluster.finished(job)) is None
        assert (homes(cluster), behind(cluster)) == (["alpha", "gamma"], [])
        assert attached(cluster) == {"alpha": ["sole"], "gamma": ["standby"]}
        assert not any(end.allows_two for end in cluster.pairs.ends)
        assert cluster.machines["beta"].local_disks == []

    tell(story)


def test_it_migrates_to_any_node_while_its_secondary_node_is_dead() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await lose(cluster, BETA)
        await cluster.run(MigrateInstance(instance_name=WEB1, target_node="alpha"))
        assert (homes(cluster), behind(cluster)) == (["alpha", "gamma"], [])
        assert (await guests(cluster))["alpha"] == {"web1": "running"}

    tell(story)


def test_the_good_copy_may_fail_while_the_new_one_follows_and_nothing_is_taken_for_it() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ModifyCluster(diskparams={"drbd": {"resync-rate": 1024}}))  # a minute
        job = await cluster.submit(MigrateInstance(instance_name=WEB1, target_node="alpha"))
        while homes(cluster) != ["alpha", "gamma"]:
            await cluster.settle(0.05)
        await lose(cluster, GAMMA)  # which it has left, and reads from
        assert (await cluster.finished(job)).status is Status.ERROR
        assert (homes(cluster), behind(cluster)) == (["alpha", "gamma"], ["alpha"])
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        with pytest.raises(Conflict, match="on alpha is behind the copy on gamma"):
            await cluster.run(StartInstance(instance_name=WEB1))
        await bring_back(cluster, GAMMA)
        await cluster.run(StartInstance(instance_name=WEB1))
        assert (await guests(cluster))["alpha"] == {"web1": "running"}

    tell(story)


def test_a_migration_to_any_node_that_is_cancelled_leaves_the_former_pair() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        job = await cluster.submit(MigrateInstance(instance_name=WEB1, target_node="alpha"))
        while homes(cluster) != ["gamma", "alpha"]:
            await cluster.settle(0.05)
        assert (await cluster.master.luxi("CancelJob", job))[0]
        assert (await cluster.finished(job)).status is Status.CANCELED
        assert homes(cluster) == ["gamma", "beta"]
        assert await guests(cluster) == {"gamma": {"web1": "running"}}
        assert attached(cluster) == {"gamma": ["sole"], "beta": ["standby"]}
        assert cluster.machines["alpha"].local_disks == []

    tell(story)


def test_it_does_not_migrate_to_any_node_from_a_copy_that_is_not_good() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        (disk,) = cluster.config.disks_of(cluster.config.instance("web1"))
        cluster.machines["gamma"].drbd.fail_volumes(f"gantry-{disk.uuid}")
        with pytest.raises(Conflict, match="would be the only ones"):
            await cluster.run(MigrateInstance(instance_name=WEB1, target_node="alpha"))
        assert homes(cluster) == ["gamma", "beta"]

    tell(story)


def test_it_fails_over_to_any_node_with_a_copy_that_follows() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(FailOverInstance(instance_name=WEB1, target_node="alpha"))
        assert (homes(cluster), behind(cluster)) == (["alpha", "beta"], [])
        assert await guests(cluster) == {"alpha": {"web1": "running"}}
        assert attached(cluster) == {"alpha": ["sole"], "beta": ["standby"]}
        assert cluster.machines["gamma"].local_disks == []

    tell(story)


@pytest.mark.parametrize("dead", [BETA, GAMMA])
def test_it_fails_over_to_any_node_from_the_copy_that_is_left(dead: NodeName) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await lose(cluster, dead)
        await cluster.run(FailOverInstance(instance_name=WEB1, target_node="alpha"))
        left = "gamma" if dead == BETA else "beta"
        assert (homes(cluster), behind(cluster)) == (["alpha", left], [])
        assert await guests(cluster) == {"alpha": {"web1": "running"}}

    tell(story)


def test_it_is_not_failed_over_to_any_node_from_a_copy_that_is_not_proven() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.lose_power("beta")
        await cluster.machines["beta"].boot()
        await lose(cluster, GAMMA)
        with pytest.raises(Conflict, match="may lack what was written last"):
            await cluster.run(FailOverInstance(instance_name=WEB1, target_node="alpha"))
        assert cluster.machines["alpha"].local_disks == []

    tell(story)


def test_it_survives_its_primary_node() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await lose(cluster, GAMMA)
        await cluster.run(FailOverInstance(instance_name=WEB1))
        assert homes(cluster) == ["beta", "gamma"]
        assert await guests(cluster) == {"beta": {"web1": "running"}}
        assert behind(cluster) == ["gamma"]

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


def test_it_starts_without_its_second_copy_only_when_told_so() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.lose_power("beta")
        with pytest.raises(NodeFailure, match=r"second copy of web1 on beta.*startup --force web1"):
            await cluster.run(StartInstance(instance_name=WEB1))
        assert behind(cluster) == []
        await cluster.run(StartInstance(instance_name=WEB1, force=True))
        assert behind(cluster) == ["beta"]
        assert await guests(cluster) == {"gamma": {"web1": "running"}}

    tell(story, start=False)


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


def test_it_starts_though_its_nodes_do_not_reach_each_other_if_told_so() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster.cut("gamma", "beta")
        with pytest.raises(Parted, match=r"not connected to its other.*startup --force web1”"):
            await cluster.run(StartInstance(instance_name=WEB1))
        await cluster.run(StartInstance(instance_name=WEB1, force=True))
        assert await guests(cluster) == {"gamma": {"web1": "running"}}
        assert behind(cluster) == ["beta"]
        cluster.heal()
        cluster.pairs.settle()
        await cluster.settle(60.0)
        assert await mirror_state(cluster) == "whole"

    tell(story, start=False)


def test_it_is_started_again_alone_where_the_other_copy_is_behind_anyway() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster.cut("gamma", "beta")
        await look(cluster)
        assert behind(cluster) == ["beta"]
        await cluster.lose_power("gamma")
        await cluster.machines["gamma"].boot()
        await cluster.run(StartInstance(instance_name=WEB1))
        assert await guests(cluster) == {"gamma": {"web1": "running"}}

    tell(story)


def test_it_starts_when_told_so_though_its_second_node_answers_nothing_but_the_module() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.machines["beta"].kill_noded()
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        assert attached(cluster) == {"beta": ["standby"]}
        await cluster.run(StartInstance(instance_name=WEB1, force=True))
        assert await guests(cluster) == {"gamma": {"web1": "running"}}

    tell(story)


def test_a_device_that_somebody_disconnected_by_hand_is_parted_and_no_split() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        module = cluster.machines["gamma"].drbd
        (device,) = await module.look()
        assert device.connection
        await module.disconnect(device.connection)
        await cluster.settle(60.0)
        assert (await mirror_state(cluster)).startswith("parted")
        await cluster.run(ActivateDisks(instance_name=WEB1, wait_for_sync=True))
        assert await mirror_state(cluster) == "whole"

    tell(story)


def test_it_is_told_how_much_a_node_lacks_that_was_off() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.lose_power("beta")
        await cluster.machines["beta"].boot()
        await cluster.settle(5.0)
        assert re.search(r"[1-9]\d* KiB are on the first one only", await mirror_state(cluster))
        order = ActivateDisks(instance_name=WEB1, wait_for_sync=True)
        job = await cluster.finished(await cluster.submit(order))
        lines = [entry.message for entry in job.ops[0].log]
        assert any(re.search(r"on gamma only: disk 0: [1-9]\d* KiB", line) for line in lines)

    tell(story)


def test_the_only_copy_is_not_noted_as_behind_because_somebody_wants_to_start_without_it() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster.machines["gamma"].volumes.groups[GROUP].volumes.clear()
        await cluster.lose_power("beta")
        with pytest.raises(NodeFailure, match="Disk 0 of web1 is missing on gamma, and the other"):
            await cluster.run(StartInstance(instance_name=WEB1, force=True))
        assert behind(cluster) == []

    tell(story, start=False)


def test_a_copy_that_missed_writes_is_noted_when_the_guest_stops() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster.cut("gamma", "beta")
        await cluster.settle(60.0)
        cluster.pairs.settle()
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        assert behind(cluster) == ["beta"]

    tell(story)


def test_a_copy_that_failed_under_its_guest_is_noted_and_the_good_one_is_not() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        (disk,) = cluster.config.disks_of(cluster.config.instance("web1"))
        cluster.machines["gamma"].drbd.fail_volumes(f"gantry-{disk.uuid}")
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        assert behind(cluster) == ["gamma"]
        await cluster.run(FailOverInstance(instance_name=WEB1))
        await cluster.run(StartInstance(instance_name=WEB1, force=True))
        assert await guests(cluster) == {"beta": {"web1": "running"}}

    tell(story)


def test_both_copies_are_deleted_with_it() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(RemoveInstance(instance_name=WEB1))
        assert [machine.local_disks for machine in cluster.machines.values()] == [[], [], []]
        assert attached(cluster) == {}

    tell(story)


def test_a_node_with_a_copy_stays() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        with pytest.raises(Conflict, match=r"beta still has instances \(web1\)"):
            await cluster.run(RemoveNode(node_name=BETA))

    tell(story)


def test_a_missing_copy_is_found() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster.machines["beta"].volumes.groups["gantry"].volumes.clear()
        found = await cluster.run(VerifyGroup(group_name="default", findings=True))
        missing = [each for each in found if each["code"] == "EINSTANCEMISSINGDISK"]
        assert {each["name"] for each in missing} == {"web1"}
        remedy = "“gnt-instance replace-disks --on-secondary web1” makes it of the other copy"
        assert all(each["message"].endswith(remedy) for each in missing)

    tell(story)


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


def test_nothing_is_replaced_where_nothing_is_faulty() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        before = await cluster.snapshot()
        await cluster.run(ReplaceDisks(instance_name=WEB1, auto=True))
        assert not before.differences(await cluster.snapshot())

    tell(story)


async def look(cluster: SimulatedCluster) -> list[object]:
    """Look at the disks of all instances; return what Ganeti's tools are told."""
    found: list[object] = await cluster.run(VerifyDisksOfGroup(group_name="default"))
    return found


async def mirror_state(cluster: SimulatedCluster) -> str:
    fields = ["mirror_state", "disk.findings"]
    answer = await cluster.master.luxi("Query", "instance", fields, None)
    (((_, state), (_, (finding,))),) = answer["data"]
    return f"{state}: {finding}" if finding else str(state)


def test_a_copy_that_falls_behind_is_noted_by_who_looks_and_counts_again_when_it_is_equal() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        assert await look(cluster) == [{}, [], {}]
        assert await mirror_state(cluster) == "whole"
        cluster.cut("gamma", "beta")
        assert await look(cluster) == [{}, ["web1"], {}]
        assert behind(cluster) == ["beta"]
        assert "not mirrored" in await mirror_state(cluster)
        cluster.heal()
        cluster.pairs.settle()  # they meet
        await cluster.settle(60.0)
        assert await look(cluster) == [{}, [], {}]
        assert behind(cluster) == []

    tell(story)


def test_a_silent_node_is_told_and_changes_no_note() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.machines["gamma"].kill_noded()
        silent, inactive, missing = await look(cluster)
        assert list(silent) == ["gamma"]  # type: ignore[call-overload]
        assert (inactive, missing, behind(cluster)) == ([], {}, [])
        assert (await mirror_state(cluster)).startswith("unknown: may have one copy only")
        await cluster.machines["gamma"].start_noded()

    tell(story)


async def written_apart(cluster: SimulatedCluster) -> None:
    """Have an operator run web1 on beta though gamma, which is alive, runs it as well."""
    cluster.cut("gamma", "beta")
    cluster.cut("gamma", "alpha")
    await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
    await cluster.run(FailOverInstance(instance_name=WEB1))
    await cluster.settle(60.0)
    cluster.pairs.settle()
    await cluster.lose_power("gamma")
    cluster.heal()
    await bring_back(cluster, GAMMA)
    await cluster.run(StartInstance(instance_name=WEB1))  # which attaches its copy on gamma, too
    await cluster.settle(10.0)


def test_copies_that_were_written_to_apart_are_found_and_one_is_given_up_by_name() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await written_apart(cluster)
        state = await mirror_state(cluster)
        assert state.startswith("split: was written to on both nodes apart")
        assert "gnt-instance discard-copy --node NODE web1" in state
        found = await cluster.run(VerifyGroup(group_name="default", findings=True))
        assert [each["code"] for each in found if each["name"] == "web1"] == ["EINSTANCEFAULTYDISK"]
        with pytest.raises(Conflict, match=r"uses disk 0 on beta.*Give up the other side"):
            await cluster.run(DiscardCopy(instance_name=WEB1, node_name=BETA))
        await cluster.run(DiscardCopy(instance_name=WEB1, node_name=GAMMA))
        assert await mirror_state(cluster) == "whole"
        assert behind(cluster) == []
        with pytest.raises(Conflict, match="were not written to apart"):
            await cluster.run(DiscardCopy(instance_name=WEB1, node_name=GAMMA))
        cluster.pairs.lost.clear()

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


def test_the_watcher_has_it_noted_when_a_copy_falls_behind() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        assert [told.text for told in await watch(cluster)] == []
        cluster.cut("gamma", "beta")
        note, *_ = await watch(cluster)
        assert note.text.startswith("Group default: copies of mirrored disks fell behind")
        await at_rest(cluster)
        assert behind(cluster) == ["beta"]
        assert await mirror_state(cluster) != "whole"

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
