"""What an operation chooses: kept through crashes, made anew when it will not do."""

import asyncio
from typing import Any

import pytest

from common.errors import Conflict, InvalidRequest, NoCapacity
from common.model.job import Job, OperationRecord, Status
from common.names import JobId, NodeId
from coordinator.locks.names import Owner
from coordinator.operations.follow_up import FollowUp
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.place import Place
from coordinator.operations.locking import wanted
from coordinator.operations.node.evacuate import EvacuateNode
from coordinator.operations.node.modify import ModifyNode
from coordinator.state.rows import Put
from tests.sim.settings import GAMMA, WEB1, create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, outcome, simulated_cluster
from tests.support.faults import Slow
from tests.support.image import uuid_of

SOMEBODY = Owner("somebody")


async def _hold(cluster: SimulatedCluster) -> None:
    """Have whoever wants web1 wait for its lock, with what has been chosen."""
    cluster.machines["alpha"].shrink_memory(1024 + 64)  # so that nothing goes to the master
    locks = cluster.master.running.locks
    await locks.acquire(SOMEBODY, wanted(instance=WEB1), timeout=0, priority=0)


async def _chosen(cluster: SimulatedCluster, number: JobId) -> str:
    """Return the node that a job has chosen that waits for its locks."""
    await asyncio.sleep(5.0)
    job = cluster.master.running.queue.find(number)
    assert job is not None
    assert job.status is Status.WAITING
    name: str = job.ops[0].choice["node"]["name"]
    return name


def _other(name: str) -> str:
    return next(other for other in ("beta", "gamma", "delta") if other != name)


def _messages(job: Job, text: str) -> int:
    return sum(text in entry.message for entry in job.ops[0].log)


def test_a_choice_that_was_stored_is_kept_by_the_next_master() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await _hold(cluster)
            number = await cluster.submit(create())
            name = await _chosen(cluster, number)
            await cluster.master.luxi("ChangeJobPriority", number, 5)  # stores its row
            await cluster.crash_master()
            await cluster.take_over(_other(name))
            job = await cluster.finished(number)
            assert outcome(job) == [name]
            assert _messages(job, "Selected nodes") == 1

    simulate(scenario())


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_choice_that_will_not_do_for_the_next_master_is_made_anew(is_stored: bool) -> None:
    async def scenario() -> None:
        async with simulated_cluster(4) as cluster:
            await _hold(cluster)
            number = await cluster.submit(create())
            name = await _chosen(cluster, number)
            if is_stored:
                await cluster.master.luxi("ChangeJobPriority", number, 5)
            await cluster.lose_power(name)
            await cluster.crash_master()
            await cluster.take_over(_other(name))
            (found,) = outcome(await cluster.finished(number))
            assert found not in (name, "alpha")

    simulate(scenario())


def test_a_plan_takes_the_place_of_the_choice_it_was_made_for() -> None:
    seen: list[OperationRecord] = []

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            number = await cluster.submit(create())
            while not (job := cluster.state.jobs[number]).status.is_final:
                seen.append(job.ops[0])
                await cluster.master.running.store.changed(cluster.state)

    simulate(scenario())
    assert [op for op in seen if op.plan is not None]
    assert not [op for op in seen if op.plan is not None and op.choice is not None]


async def _drained_while_it_waits(cluster: SimulatedCluster, number: JobId) -> Job:
    name = await _chosen(cluster, number)
    await cluster.run(ModifyNode(node_name=cluster.config.node(name).name, drained=True))
    cluster.master.running.locks.release(SOMEBODY)
    return await cluster.finished(number)


def test_a_move_goes_elsewhere_when_the_node_that_was_chosen_takes_nothing_any_more() -> None:
    async def scenario() -> None:
        async with simulated_cluster(4) as cluster:
            await cluster.run(create("web1", "alpha"))
            await _hold(cluster)
            number = await cluster.submit(MigrateInstance(instance_name=WEB1))
            job = await _drained_while_it_waits(cluster, number)
            assert outcome(job) is None
            assert _messages(job, "Another node is looked for") == 1

    simulate(scenario())


def test_where_an_evacuation_leads_is_not_chosen_again_by_one_move() -> None:
    async def scenario() -> None:
        async with simulated_cluster(4) as cluster:
            await cluster.run(create("web1", "gamma"))
            await _hold(cluster)
            result = await cluster.run(EvacuateNode(node_name=GAMMA))
            ((_, number),) = result["jobs"]
            job = await _drained_while_it_waits(cluster, JobId(number))
            with pytest.raises(Conflict, match=r"^Node \w+ is drained and takes no instances\.$"):
                outcome(job)
            assert _messages(job, "Another node is looked for") == 0

    simulate(scenario())


_WEB1 = {"instance_name": "web1", "target_node": "alpha"}
_NEW = {"instance_name": "web1", "disk_template": "diskless", "pnode": "alpha"}
_PLACE = {"node": {"uuid": uuid_of("alpha"), "name": "alpha"}, "allocator": ""}


@pytest.mark.parametrize(
    ("opcode", "parameters"),
    [
        ("OP_INSTANCE_CREATE", _NEW),
        ("OP_INSTANCE_MIGRATE", _WEB1),
        ("OP_INSTANCE_FAILOVER", _WEB1),
        ("OP_INSTANCE_MULTI_ALLOC", {"instances": [_NEW]}),
        ("OP_INSTANCE_CHANGE_GROUP", {"instance_name": "web1"}),
        ("OP_NODE_EVACUATE", {"node_name": "gamma"}),
    ],
)
def test_no_client_can_say_what_only_the_coordinator_chooses(
    opcode: str, parameters: dict[str, Any]
) -> None:
    told: dict[str, Any] = {
        "reserved": True, "choice": _PLACE, "place": _PLACE, "places": {"web1": "alpha"},
        "moves": {"jobs": []}, "plan": {}, "locks": [],
    }  # fmt: skip

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            for name, value in told.items():
                order = {"OP_ID": opcode, **parameters, name: value}
                with pytest.raises(InvalidRequest, match=f"has no parameter “{name}”"):
                    await cluster.master.luxi("SubmitJob", [order])
                with pytest.raises(InvalidRequest, match=f"has no parameter “{name}”"):
                    await cluster.master.luxi("SubmitManyJobs", [[order]])

    simulate(scenario())


@pytest.mark.parametrize("reserved", [True, False])
def test_a_job_that_a_version_queued_which_told_room_by_a_parameter_is_carried_out(
    reserved: bool,
) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            record = OperationRecord(
                input=create("web1", "gamma").to_input() | {"reserved": reserved},
                summary="INSTANCE_CREATE(web1)",
            )
            job = Job(id=JobId(7), ops=(record,), received=cluster.now())
            await cluster.master.running.store.commit([Put(job)])
            await cluster.crash_master()
            await cluster.take_over("beta")
            assert outcome(await cluster.finished(JobId(7))) == ["gamma"]
            assert cluster.config.instances_on(NodeId(uuid_of("gamma")))

    simulate(scenario())


def test_the_room_of_a_later_operation_is_kept_while_an_earlier_one_of_its_job_runs() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            cluster.machines["gamma"].shrink_memory(1024 + 2 * 128)
            place = Place(node=cluster.config.node("gamma").ref)
            orders = [create(name, "gamma").to_input() for name in ("web1", "web2")]
            follow_ups = [FollowUp(input=order, choice=place) for order in orders]
            _, (job,) = cluster.master.running.queue.read([follow_ups])
            await cluster.master.running.store.commit([job.put()])
            slow = Slow(lambda trip: trip.call.name == "disks.ensure_present", 20.0)
            cluster.network.faults.append(slow)
            for successor in ("beta", "alpha"):  # while neither has begun, and while one runs
                await cluster.crash_master()
                await cluster.take_over(successor)
                await asyncio.sleep(5.0)
                with pytest.raises(NoCapacity, match="gamma has 0 MiB of memory free that is not"):
                    await cluster.run(create("late", "gamma"))
            ended = await cluster.finished(job.id)
            assert [op.status for op in ended.ops] == [Status.SUCCESS] * 2

    simulate(scenario())
