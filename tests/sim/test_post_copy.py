"""Migrations by post-copy, in which half of the memory is on either node for some time.

Whatever happens then, the guest never runs twice, neither half is given up while the guest can go
on, and what is lost with a node can be told, and started anew.
"""

import asyncio
from contextlib import suppress

import pytest
from msgspec.structs import replace

from common.errors import Conflict
from common.model.job import Status
from common.names import InstanceId, MiB
from common.noderpc.instances import GuestReport, GuestState, Rest
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.reboot import RebootInstance
from coordinator.operations.instance.rest_of_memory import INSISTENCE_S, Course, course_of
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.node.modify import ModifyNode
from noded.hypervisor.fake_guest import Phase
from tests.sim.mishaps import Mishap, befall, never_twice, reaches
from tests.sim.settings import BETA, BY_POST_COPY, GAMMA, WEB1, create, mirrored
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, outcome, simulated_cluster
from tests.support.seeds import is_thorough, seeds

SOURCE, TARGET = "beta", "gamma"
MOVE = MigrateInstance(instance_name=WEB1, target_node=TARGET)
CLEANUP = MigrateInstance(instance_name=WEB1, cleanup=True)
AFTER_ALL_S = 200.0
LINES_LAST_S = 0.1


def cases() -> list[tuple[Phase, Mishap, Mishap]]:
    """Return a mishap to one node, at the switch and after it, a quarter by seed; or all pairs."""
    every = [
        (phase, source, target)
        for phase in (Phase.SWITCHING, Phase.DONE)
        for source in Mishap
        for target in Mishap
    ]
    alone = (each for each in every if (each[1] is Mishap.NONE) != (each[2] is Mishap.NONE))
    return every if is_thorough() else list(alone)[seeds()[0] % 4 :: 4]


@pytest.mark.parametrize(
    ("phase", "source", "target"), cases(), ids=lambda each: getattr(each, "name", each).lower()
)
def test_guest_runs_once_and_whole_or_is_known_to_be_lost(
    phase: Phase, source: Mishap, target: Mishap
) -> None:
    simulate(_move_and_settle(phase, source, target))


async def _move_and_settle(phase: Phase, source: Mishap, target: Mishap) -> None:
    async with simulated_cluster(3, seed=seeds()[0]) as cluster:
        uuid = await _begin(cluster)
        watcher = asyncio.ensure_future(never_twice(cluster))
        number = await cluster.submit(MOVE)
        await reaches(cluster, SOURCE, number, phase)
        async with asyncio.TaskGroup() as mishaps:
            mishaps.create_task(befall(cluster, SOURCE, source))
            mishaps.create_task(befall(cluster, TARGET, target))
            job = await cluster.finished(number)
        told = "; ".join(str(op.failure) for op in job.ops)
        await asyncio.sleep(AFTER_ALL_S)
        lost_power = Mishap.LOSES_POWER in (source, target)
        if job.status is Status.SUCCESS and not lost_power:
            assert _where(cluster, uuid) == [TARGET], told
        try:
            await cluster.run(CLEANUP)
        except Conflict:  # it lacks what was lost with its source
            assert lost_power, told
            await cluster.run(ShutDownInstance(instance_name=WEB1, force=True))
        instance = cluster.config.instance("web1")
        assert instance.maybe_on == (), told
        home = cluster.config.nodes[instance.primary_node].name
        assert lost_power or _where(cluster, uuid) == [home], told
        await cluster.run(StartInstance(instance_name=WEB1))
        assert [n for n in cluster.machines if cluster.machines[n].guests.has(uuid)] == [home]
        await _counts(cluster, home, uuid)
        watcher.cancel()
        with suppress(asyncio.CancelledError):
            await watcher


def test_guest_goes_on_while_the_rest_of_its_memory_comes() -> None:
    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            uuid = await _begin(cluster)
            number = await cluster.submit(MOVE)
            await reaches(cluster, SOURCE, number, Phase.DONE)
            await cluster.settle(0.5)
            await _counts(cluster, TARGET, uuid)
            instance = cluster.config.instance("web1")
            nodes = [cluster.config.nodes[each].name for each in instance.maybe_on]
            assert (nodes, cluster.config.nodes[instance.primary_node].name) == (
                [SOURCE, TARGET], TARGET,
            )  # fmt: skip
            assert cluster.machines[SOURCE].guests.has(uuid)
            assert outcome(await cluster.finished(number)) is None
            assert cluster.config.instance("web1").maybe_on == ()
            assert not cluster.machines[SOURCE].guests.has(uuid)

    simulate(scenario())


def test_no_half_is_given_up_and_no_cancel_obeyed_while_the_line_is_cut() -> None:
    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            uuid = await _begin(cluster, mirrored("web1", SOURCE, TARGET))
            number = await cluster.submit(MOVE)
            await reaches(cluster, SOURCE, number, Phase.DONE)
            await cluster.settle(0.5)
            cluster.cut(SOURCE, TARGET)
            await cluster.settle(1.0)
            before = cluster.machines[TARGET].guests.number(uuid)
            done, _ = await cluster.master.luxi("CancelJob", number)
            assert not done
            job = await cluster.finished(number)
            assert job.status is Status.ERROR
            failure = str(job.ops[0].failure)
            assert "does not get to gamma, where it runs and waits for it" in failure
            assert "--cleanup web1" in failure
            assert cluster.machines[TARGET].guests.number(uuid) == before
            for operation in (MOVE, FailOverInstance(instance_name=WEB1, target_node=SOURCE)):
                with pytest.raises(Conflict, match="may be on beta or gamma"):
                    await cluster.run(operation)
            assert all(cluster.machines[node].guests.has(uuid) for node in (SOURCE, TARGET))
            cluster.heal()
            await cluster.run(CLEANUP)
            assert cluster.config.instance("web1").maybe_on == ()
            await _counts(cluster, TARGET, uuid)

    simulate(scenario())


def test_guest_that_hangs_for_what_it_lacks_is_given_another_line_by_a_cleanup() -> None:
    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            uuid = await _cut_in_half(cluster)
            cluster.machines[TARGET].guests.touch_rest(uuid)
            await cluster.run(CLEANUP)
            assert cluster.config.instance("web1").maybe_on == ()
            await _counts(cluster, TARGET, uuid)

    simulate(scenario())


def test_line_that_breaks_again_and_again_is_not_mended_for_ever() -> None:
    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            uuid = await _begin(cluster)
            number = await cluster.submit(MOVE)
            await reaches(cluster, SOURCE, number, Phase.DONE)
            breaking = asyncio.ensure_future(_break_every_line(cluster))
            async with asyncio.timeout(3 * INSISTENCE_S):
                job = await cluster.finished(number)
            assert "Each line between the two that it is given breaks" in str(job.ops[0].failure)
            breaking.cancel()
            await asyncio.wait((breaking,))
            cluster.heal()
            await cluster.run(CLEANUP)
            await _counts(cluster, TARGET, uuid)

    simulate(scenario())


async def _break_every_line(cluster: SimulatedCluster) -> None:
    while True:
        cluster.cut(SOURCE, TARGET)
        await cluster.machines[SOURCE].guests.guests()  # which notices
        cluster.heal()
        await asyncio.sleep(LINES_LAST_S)


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
            await _counts(cluster, SOURCE, uuid)
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
            await _counts(cluster, "alpha", uuid)

    simulate(scenario())


def test_what_its_dead_source_has_lost_is_ended_and_started_anew() -> None:
    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            uuid = await _begin(cluster)
            number = await cluster.submit(MOVE)
            await reaches(cluster, SOURCE, number, Phase.DONE)
            await cluster.settle(0.5)
            await cluster.lose_power(SOURCE)
            assert (await cluster.finished(number)).status is Status.ERROR
            await cluster.run(ModifyNode(node_name=BETA, offline=True, force=True))
            with pytest.raises(Conflict, match="“gnt-instance shutdown --force web1” ends it"):
                await cluster.run(CLEANUP)
            await cluster.run(ShutDownInstance(instance_name=WEB1, force=True))
            await cluster.run(StartInstance(instance_name=WEB1))
            await _counts(cluster, TARGET, uuid)

    simulate(scenario())


def test_half_of_a_guest_is_not_asked_to_power_off_before_the_rest_has_come() -> None:
    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            uuid = await _cut_in_half(cluster, mirrored("web1", SOURCE, TARGET))
            with pytest.raises(Conflict, match=r"on two nodes still.*--cleanup web1"):
                await cluster.run(ShutDownInstance(instance_name=WEB1))
            await cluster.run(CLEANUP)
            await _counts(cluster, TARGET, uuid)
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
            await _counts(cluster, TARGET, uuid)
            await cluster.run(RebootInstance(instance_name=WEB1))
            await _counts(cluster, TARGET, uuid)

    simulate(scenario())


def test_half_of_a_guest_is_ended_on_both_nodes_by_force() -> None:
    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            uuid = await _cut_in_half(cluster, mirrored("web1", SOURCE, TARGET))
            await cluster.run(ShutDownInstance(instance_name=WEB1, force=True))
            assert not any(machine.guests.has(uuid) for machine in cluster.machines.values())
            assert cluster.config.instance("web1").maybe_on == ()

    simulate(scenario())


ALIVE, UNKNOWN, MIGRATED = GuestState.RUNNING, GuestState.UNKNOWN, GuestState.MIGRATED
NONE, COMES, CUT = Rest.NONE, Rest.COMES, Rest.CUT


@pytest.mark.parametrize(
    ("there", "here", "course"),
    [
        (None, (MIGRATED, CUT), Course.OVER),
        ((GuestState.STOPPED, NONE), (MIGRATED, CUT), Course.OVER),
        ((ALIVE, NONE), (MIGRATED, NONE), Course.OVER),
        ((ALIVE, NONE), (MIGRATED, CUT), Course.OVER),  # its last word was lost
        ((ALIVE, NONE), None, Course.OVER),
        ((ALIVE, COMES), (MIGRATED, COMES), Course.COMES),
        ((ALIVE, COMES), (MIGRATED, NONE), Course.COMES),
        ((ALIVE, COMES), (MIGRATED, CUT), Course.CUT),
        ((ALIVE, CUT), (MIGRATED, COMES), Course.CUT),
        ((ALIVE, CUT), (MIGRATED, CUT), Course.CUT),
        ((ALIVE, CUT), (MIGRATED, NONE), Course.LOST),
        ((ALIVE, CUT), None, Course.LOST),
        ((UNKNOWN, CUT), (MIGRATED, CUT), Course.CUT),
        ((UNKNOWN, CUT), (MIGRATED, COMES), Course.HANGS),  # its line may be fine
        ((UNKNOWN, CUT), (MIGRATED, NONE), Course.HANGS),
        ((UNKNOWN, NONE), (MIGRATED, CUT), Course.HANGS),
        ((GuestState.INCOMING, NONE), (MIGRATED, CUT), Course.HANGS),
        ((GuestState.INCOMING, NONE), None, Course.LOST),
    ],
)
def test_how_it_goes_follows_from_what_both_nodes_tell(
    there: tuple[GuestState, Rest] | None, here: tuple[GuestState, Rest] | None, course: Course
) -> None:
    assert course_of(_told(there), _told(here)) is course


def _told(what: tuple[GuestState, Rest] | None) -> GuestReport | None:
    if what is None:
        return None
    return GuestReport(
        id=InstanceId("web1"), name=WEB1, state=what[0], rest=what[1], memory=MiB(1), vcpus=1
    )


async def _begin(cluster: SimulatedCluster, order: CreateInstance | None = None) -> InstanceId:
    await cluster.run(replace(order or create("web1", SOURCE), hvparams=BY_POST_COPY))
    return InstanceId(cluster.config.instance("web1").uuid)


async def _cut_in_half(
    cluster: SimulatedCluster, order: CreateInstance | None = None
) -> InstanceId:
    """Leave web1 running on the target without a part of its memory; the network is back."""
    uuid = await _begin(cluster, order)
    number = await cluster.submit(MOVE)
    await reaches(cluster, SOURCE, number, Phase.DONE)
    await cluster.settle(0.5)
    cluster.cut(SOURCE, TARGET)
    assert (await cluster.finished(number)).status is Status.ERROR
    cluster.heal()
    return uuid


async def _lose_target(cluster: SimulatedCluster, order: CreateInstance) -> InstanceId:
    """Leave a part of its memory on the source, and nothing of web1 anywhere else."""
    uuid = await _begin(cluster, order)
    number = await cluster.submit(MOVE)
    await reaches(cluster, SOURCE, number, Phase.DONE)
    await cluster.settle(0.5)
    await cluster.lose_power(TARGET)
    assert (await cluster.finished(number)).status is Status.ERROR
    await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
    return uuid


async def _counts(cluster: SimulatedCluster, node: str, uuid: InstanceId) -> None:
    guests = cluster.machines[node].guests
    before = guests.number(uuid)
    await cluster.settle(1.0)
    assert guests.number(uuid) > before


def _where(cluster: SimulatedCluster, uuid: InstanceId) -> list[str]:
    return [name for name, each in cluster.machines.items() if each.guests.lives(uuid)]
