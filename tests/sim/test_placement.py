"""Many instances placed at the same time: all that fit, none more, and nobody waits for nothing."""

from collections import Counter
from random import Random

import pytest
from msgspec.structs import replace

from common.errors import GntError, InvalidRequest, NoCapacity
from common.model.job import Status
from common.model.template import DiskTemplate
from common.names import InstanceName, MiB
from coordinator.operations.cluster.verify_group import VerifyGroup
from coordinator.operations.devices import DiskRequest
from coordinator.operations.instance.startup import StartInstance
from tests.sim.many_at_once import OWN_MIB, allow_jobs, check_not_overcommitted, made, order, submit
from tests.support.clock import simulate
from tests.support.cluster import outcome, simulated_cluster
from tests.support.faults import Failing, Slow, Watching
from tests.support.network import Trip
from tests.support.seeds import seeds


@pytest.mark.parametrize("seed", seeds(usual=1))
def test_of_fifty_at_once_all_that_fit_are_placed(seed: int) -> None:
    """At once as many as one after the other, on machines of any size."""

    async def scenario(*, at_once: bool) -> int:
        async with simulated_cluster(nodes=4, seed=seed) as cluster:
            chance = Random(seed)
            for machine in cluster.machines.values():
                machine.shrink_memory(OWN_MIB + chance.choice((2048, 3000, 4096)))
            await allow_jobs(cluster, 50)
            orders = [order(f"web{number}") for number in range(50)]
            if at_once:
                done = await made(cluster, await submit(cluster, orders))
            else:
                done = []
                for each in orders:
                    done += await made(cluster, await submit(cluster, [each]))
            await check_not_overcommitted(cluster)
            assert sum(done) == len(cluster.config.instances) == len(cluster.shared.disks)
            assert await cluster.run(VerifyGroup(group_name="default")) is True
            return sum(done)

    assert simulate(scenario(at_once=True)) == simulate(scenario(at_once=False)) > 20


@pytest.mark.parametrize("seed", seeds())
def test_whoever_was_refused_does_not_fit_afterwards_either(seed: int) -> None:
    """All are of one size: of several, those that came later may leave a better fit."""

    async def scenario() -> None:
        async with simulated_cluster(nodes=4, seed=seed) as cluster:
            chance = Random(seed)
            for machine in cluster.machines.values():
                machine.shrink_memory(OWN_MIB + chance.choice((2048, 4096)))
            await allow_jobs(cluster, 50)
            size = chance.choice((512, 700, 1024))
            orders = [order(f"web{number}", size) for number in range(40)]
            done = await made(cluster, await submit(cluster, orders))
            await check_not_overcommitted(cluster)
            refused = [each for each, good in zip(orders, done, strict=True) if not good]
            assert refused
            for each in refused[:5]:
                with pytest.raises(NoCapacity, match="Can't compute nodes using iallocator 'hail'"):
                    await cluster.run(each, dry_run=True)

    simulate(scenario())


def test_a_node_and_an_allocator_are_not_named_for_one_instance() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            both = replace(order("web1"), pnode="beta", iallocator="hail")
            with pytest.raises(InvalidRequest, match="a node or an allocator, not both"):
                await cluster.run(both)
            assert not cluster.config.instances

    simulate(scenario())


def test_equal_instances_are_spread_over_equal_nodes() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=5) as cluster:
            await allow_jobs(cluster, 50)
            orders = [order(f"web{number}") for number in range(20)]
            assert all(await made(cluster, await submit(cluster, orders)))
            homes = Counter(each.primary_node for each in cluster.config.instances.values())
            assert set(homes.values()) == {4}

    simulate(scenario())


def test_nobody_waits_for_another_one_s_disks() -> None:
    """Twenty instances, each a minute of work on the same nodes, are there after a minute."""

    def of_disks(trip: Trip) -> bool:
        return trip.call.name == "disks.ensure_present"

    async def scenario() -> None:
        async with simulated_cluster(nodes=2) as cluster:
            cluster.network.faults.append(Slow(of_disks, 25.0))
            began = cluster.now()
            orders = [order(f"web{number}") for number in range(20)]
            assert all(await made(cluster, await submit(cluster, orders)))
            assert cluster.now() - began < 60

    simulate(scenario())


def test_nodes_are_not_asked_once_for_every_job() -> None:
    def of_facts(trip: Trip) -> bool:
        return trip.call.name == "facts.facts"

    async def scenario() -> None:
        async with simulated_cluster(nodes=3) as cluster:
            await allow_jobs(cluster, 50)
            asked = Watching(of_facts)
            cluster.network.faults.append(asked)
            orders = [order(f"web{number}", 128) for number in range(50)]
            assert all(await made(cluster, await submit(cluster, orders)))
            assert len(asked.seen) < 50

    simulate(scenario())


def test_nodes_that_are_named_are_all_that_are_asked_what_they_have_free() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=3) as cluster:
            asked = Watching(lambda trip: trip.call.name == "facts.facts")
            cluster.network.faults.append(asked)
            named = replace(order("web0"), pnode="beta")
            assert all(await made(cluster, await submit(cluster, [named])))
            assert [trip.target for trip in asked.seen] == ["beta"]

    simulate(scenario())


def test_what_fails_gives_its_place_back() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=3) as cluster:
            for machine in cluster.machines.values():
                machine.shrink_memory(OWN_MIB + 1025)
            cluster.network.faults.append(Failing(lambda t: t.call.name == "disks.ensure_present"))
            numbers = await submit(cluster, [order(f"bad{number}", 512) for number in range(4)])
            for number in numbers:
                assert (await cluster.finished(number)).status is Status.ERROR
            cluster.network.faults.clear()
            orders = [order(f"good{number}", 512) for number in range(9)]
            assert sum(await made(cluster, await submit(cluster, orders))) == 4
            await check_not_overcommitted(cluster)

    simulate(scenario())


@pytest.mark.parametrize("seed", seeds())
def test_promises_outlive_their_coordinator(seed: int) -> None:
    """A successor counts what half-done jobs will take before it places anything else."""

    def of_starts(trip: Trip) -> bool:
        return trip.call.name == "instances.ensure_running"

    async def scenario() -> None:
        async with simulated_cluster(nodes=3, seed=seed) as cluster:
            for machine in cluster.machines.values():
                machine.shrink_memory(OWN_MIB + 2048)
            await allow_jobs(cluster, 50)
            slow = Slow(lambda t: of_starts(t) or t.call.name == "disks.ensure_present", 5.0)
            cluster.network.faults.append(slow)
            first = await submit(cluster, [order(f"old{number}") for number in range(8)])
            await cluster.settle(0.5 + Random(seed).random() * 20)
            await cluster.crash_master()
            await cluster.take_over("beta")
            second = await submit(cluster, [order(f"new{number}") for number in range(20)])
            done = await made(cluster, first + second)
            await check_not_overcommitted(cluster)
            # 7 fit on each of three nodes, as hail leaves nothing to 0; two have to be enough.
            assert sum(done) == 14
            assert all(done[:8])

    simulate(scenario())


def test_instances_for_a_named_node_do_not_take_more_than_it_has() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=3) as cluster:
            cluster.machines["gamma"].shrink_memory(OWN_MIB + 768)
            orders = [order(f"web{number}", pnode="gamma") for number in range(6)]
            assert sum(await made(cluster, await submit(cluster, orders))) == 3
            await check_not_overcommitted(cluster)
            with pytest.raises(NoCapacity, match="gamma has 0 MiB of memory free; late needs 256"):
                await cluster.run(order("late", pnode="gamma"))

    simulate(scenario())


def test_an_instance_that_should_run_and_does_not_keeps_its_memory() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=2) as cluster:
            cluster.machines["beta"].shrink_memory(OWN_MIB + 512)
            await cluster.run(order("web1", 512, pnode="beta"))
            await cluster.lose_power("beta")
            await cluster.machines["beta"].boot()
            cluster.machines["beta"].shrink_memory(OWN_MIB + 512)
            with pytest.raises(NoCapacity, match="0 MiB of memory free that is not promised"):
                await cluster.run(order("web2", 512, pnode="beta"))
            await cluster.run(StartInstance(instance_name=InstanceName("web1")))

    simulate(scenario())


def test_space_for_files_counts_too() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=3) as cluster:
            for machine in cluster.machines.values():
                machine.files.capacity = MiB(300)
            local = {"disk_template": DiskTemplate.FILE, "disks": (DiskRequest(size=100),)}
            orders = [order(f"web{number}", 128, **local) for number in range(12)]
            done = await made(cluster, await submit(cluster, orders))
            assert sum(done) == 9
            assert [machine.files.free for machine in cluster.machines.values()] == [0, 0, 0]
            with pytest.raises(NoCapacity, match="nearest, with 0 MiB left in the directory"):
                await cluster.run(order("web", 128, **local))
            with pytest.raises(
                NoCapacity, match=r"gamma has 0 MiB left in the directory .*are needed for web"
            ):
                await cluster.run(order("web", 128, pnode="gamma", **local))

    simulate(scenario())


def test_a_dry_run_chooses_after_all_checks_and_changes_nothing() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=3) as cluster:
            before = await cluster.snapshot()
            number = await cluster.submit(order("web1"), dry_run=True)
            job = await cluster.finished(number)
            (node,) = outcome(job)
            assert node in cluster.names
            said = [entry.message for entry in job.ops[0].log]
            assert f"Selected nodes for instance web1 via iallocator hail: {node}" in said
            assert f"would start web1 on {node}" in said
            assert before.differences(await cluster.snapshot()) == []
            await check_not_overcommitted(cluster)
            with pytest.raises(GntError):
                await cluster.run(order("web2", 100_000), dry_run=True)

    simulate(scenario())
