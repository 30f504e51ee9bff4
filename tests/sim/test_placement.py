"""Many instances placed at the same time: all that fit, none more, and nobody waits for nothing."""

import asyncio
import dataclasses
import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import Conflict, GntError, InvalidRequest, NoCapacity, NotFound
from common.model.job import Status
from common.model.template import DiskTemplate
from common.names import InstanceName, JobId, MiB, NodeId, NodeName
from common.noderpc.instances import GuestState
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.cluster.verify_group import VerifyGroup
from coordinator.operations.devices import DiskRequest
from coordinator.operations.instance.change_group import ChangeGroup
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.create_many import CreateInstances
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.node.evacuate import EvacuateNode
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.placement.allocators import AllocatorFailed
from coordinator.state.rows import Put
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, outcome, simulated_cluster
from tests.support.faults import Failing, Slow, Watching
from tests.support.image import uuid_of
from tests.support.network import Trip
from tests.support.seeds import seeds

OWN_MIB = 1024  # what a simulated machine keeps for itself


def order(name: str, memory: int = 256, **fields: Any) -> CreateInstance:
    """Return an order for an instance that the allocator places."""
    values: dict[str, Any] = {
        "disk_template": DiskTemplate.SHAREDFILE, "disks": (DiskRequest(size=64),),
        "beparams": {"memory": memory},
    } | fields  # fmt: skip
    return CreateInstance(instance_name=InstanceName(name), **values)


async def submit(cluster: SimulatedCluster, orders: list[CreateInstance]) -> list[JobId]:
    answers = await cluster.master.luxi("SubmitManyJobs", [[each.to_input()] for each in orders])
    return [JobId(number) for _, number in answers]


async def made(cluster: SimulatedCluster, numbers: list[JobId]) -> list[bool]:
    """Wait for all jobs; tell which succeeded. The others may only have found no room."""
    return [await _succeeded(cluster, number) for number in numbers]


async def _succeeded(cluster: SimulatedCluster, number: JobId) -> bool:
    try:
        outcome(await cluster.finished(number))
    except NoCapacity:
        return False
    return True


async def check_not_overcommitted(cluster: SimulatedCluster) -> None:
    for machine in cluster.machines.values():
        guests = await machine.guest_list()
        given = sum(guest.memory for guest in guests if guest.state is GuestState.RUNNING)
        assert given <= machine.hardware.report.memory.total - OWN_MIB, f"{machine.name}: {given}"
    assert not cluster.master.running._around.placing.promises.standing()


async def allow_jobs(cluster: SimulatedCluster, count: int) -> None:
    """Let so many jobs run at once."""
    changed = replace(cluster.config.cluster, max_running_jobs=count)
    await cluster.master.running.store.commit([Put(changed)])


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
            numbers = [await cluster.submit(each, priority=-20) for each in late]
            assert all(await made(cluster, [JobId(number) for _, number in moves]))
            assert sum(await made(cluster, numbers)) == 1
            await check_not_overcommitted(cluster)

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


def test_an_allocator_has_to_be_named_where_there_is_no_default() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=2) as cluster:
            changed = replace(cluster.config.cluster, default_iallocator="")
            await cluster.master.running.store.commit([Put(changed)])
            with pytest.raises(InvalidRequest, match="Name a node with -n, or an allocator"):
                await cluster.run(order("web1"))
            with pytest.raises(InvalidRequest, match="is no name of an allocator"):
                await cluster.run(order("web1", iallocator="../../bin/sh"))
            with pytest.raises(GntError, match="no allocator “nope”; the built-in one is “hail”"):
                await cluster.run(order("web1", iallocator="nope"))
            await cluster.run(order("web1", iallocator="hail"))

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
            late = await cluster.submit(order("late"), priority=-20)
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


def test_default_allocators_are_tried_in_order() -> None:
    asked = []

    async def run_program(program: Path, options: Sequence[str], message: str) -> str:
        asked.append((program.name, *options))
        told = json.loads(message)
        assert told["request"]["type"] == "allocate"
        if program.name == "useless":
            return '{"success": false, "info": "no idea", "result": []}'
        return json.dumps({"success": True, "info": "here", "result": [sorted(told["nodes"])[1]]})

    async def scenario(folder: Path) -> None:
        for name in ("useless", "clever"):
            (folder / name).touch(0o755)
        async with simulated_cluster(nodes=3) as cluster:
            placing = cluster.master.running._around
            placing.placing = dataclasses.replace(
                placing.placing, run_program=run_program, search_path=(folder, None)
            )
            with pytest.raises(NotFound, match="There is no allocator “nope”"):
                await cluster.run(ModifyCluster(default_iallocators={"allocate": "nope"}))
            with pytest.raises(InvalidRequest, match="are not asked for “tea”, but for allocate"):
                await cluster.run(ModifyCluster(default_iallocators={"tea": "hail"}))
            await cluster.run(
                ModifyCluster(
                    default_iallocators={"allocate": "useless:clever:hail", "relocate": "none"},
                    default_iallocator_params={"x": "1", "flag": True},
                )
            )
            number = await cluster.submit(order("web1"))
            assert outcome(await cluster.finished(number)) == ["beta"]
            assert asked == [("useless", "--flag", "--x=1"), ("clever", "--flag", "--x=1")]
            said = [entry.message for entry in cluster.state.jobs[number].ops[0].log]
            assert said[0] == (
                "Can't compute nodes using iallocator 'useless': no idea The next allocator is "
                "asked."
            )
            assert "Selected nodes for instance web1 via iallocator clever: beta" in said
            with pytest.raises(InvalidRequest, match="no default allocator for “relocate”"):
                await cluster.run(MigrateInstance(instance_name=InstanceName("web1")))
            with pytest.raises(NoCapacity, match=r"^Can't compute nodes .* 'useless': no idea$"):
                await cluster.run(order("web2", iallocator="useless"))
            await cluster.run(ModifyCluster(default_iallocators={"allocate": "default"}))
            assert cluster.config.cluster.default_iallocators == {"relocate": ()}

    with tempfile.TemporaryDirectory() as folder:
        simulate(scenario(Path(folder)))


def test_programs_that_choose_at_the_same_time_do_not_choose_the_same() -> None:
    async def run_program(program: Path, options: Sequence[str], message: str) -> str:
        await asyncio.sleep(1.0)
        told = json.loads(message)
        nodes = told["nodes"]
        best = max(nodes, key=lambda name: (nodes[name]["free_memory"], name))
        if nodes[best]["free_memory"] < told["request"]["memory"]:
            return json.dumps({"success": False, "info": "all full", "result": []})
        return json.dumps({"success": True, "info": "", "result": [best]})

    async def scenario(folder: Path) -> None:
        (folder / "slow").touch(0o755)
        async with simulated_cluster(nodes=3) as cluster:
            for machine in cluster.machines.values():
                machine.shrink_memory(OWN_MIB + 1024)
            placing = cluster.master.running._around
            placing.placing = dataclasses.replace(
                placing.placing, run_program=run_program, search_path=(folder, None)
            )
            orders = [order(f"web{number}", iallocator="slow") for number in range(12)]
            inside = [order(f"new{number}") for number in range(3)]
            numbers = await submit(cluster, [*orders, *inside])
            done = await made(cluster, numbers)
            await check_not_overcommitted(cluster)
            homes = Counter(each.primary_node for each in cluster.config.instances.values())
            assert sum(homes.values()) == sum(done)
            assert set(homes.values()) == {4}

    with tempfile.TemporaryDirectory() as folder:
        simulate(scenario(Path(folder)))


def test_a_program_s_choice_is_checked() -> None:
    answers = iter((["nowhere"], ["gamma"], ["beta", "beta"], "beta", ["beta"]))

    async def run_program(program: Path, options: Sequence[str], message: str) -> str:
        return json.dumps({"success": True, "info": "", "result": next(answers)})

    async def scenario(folder: Path) -> None:
        (folder / "odd").touch(0o755)
        async with simulated_cluster(nodes=3) as cluster:
            placing = cluster.master.running._around
            placing.placing = dataclasses.replace(
                placing.placing, run_program=run_program, search_path=(folder, None)
            )
            await cluster.run(ModifyNode(node_name=NodeName("gamma"), drained=True, force=True))
            for complaint in (
                "it names “nowhere”, which is no node",
                "it names gamma, which takes no instances",
                r"it names 2 node\(s\) where 1 are needed",
                "Cannot read its answer: result is a list",
            ):
                with pytest.raises(AllocatorFailed, match=complaint):
                    await cluster.run(order("web1", iallocator="odd"))
            assert await cluster.run(order("web1", iallocator="odd")) == ["beta"]

    with tempfile.TemporaryDirectory() as folder:
        simulate(scenario(Path(folder)))
