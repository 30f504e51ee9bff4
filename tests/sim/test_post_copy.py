"""Migrations by post-copy, in which half of the memory is on either node for some time.

Whatever happens then, the guest never runs twice, neither half is given up while the guest can go
on, and what is lost with a node can be told, and started anew.
"""

import asyncio
from contextlib import suppress

import pytest

from common.errors import Conflict
from common.model.job import Status
from common.names import InstanceId
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.rest_of_memory import INSISTENCE_S
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.startup import StartInstance
from noded.hypervisor.fake_guest import Phase
from tests.sim.by_post_copy import CLEANUP, MOVE, SOURCE, TARGET, begin, counts, halve
from tests.sim.mishaps import Mishap, befall, never_twice, reaches
from tests.sim.settings import WEB1, mirrored
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, outcome, simulated_cluster
from tests.support.seeds import is_thorough, one_in, seeds

AFTER_ALL_S = 200.0
LINES_LAST_S = 0.1


def cases() -> list[tuple[Phase, Mishap, Mishap]]:
    """Return a mishap to one node, at the switch and after it, some by seed; or all pairs."""
    every = [
        (phase, source, target)
        for phase in (Phase.SWITCHING, Phase.DONE)
        for source in Mishap
        for target in Mishap
    ]
    alone = (each for each in every if (each[1] is Mishap.NONE) != (each[2] is Mishap.NONE))
    return every if is_thorough() else list(alone)[seeds()[0] % one_in(4) :: one_in(4)]


@pytest.mark.parametrize(
    ("phase", "source", "target"), cases(), ids=lambda each: getattr(each, "name", each).lower()
)
def test_guest_runs_once_and_whole_or_is_known_to_be_lost(
    phase: Phase, source: Mishap, target: Mishap
) -> None:
    simulate(_move_and_settle(phase, source, target))


async def _move_and_settle(phase: Phase, source: Mishap, target: Mishap) -> None:
    async with simulated_cluster(3, seed=seeds()[0]) as cluster:
        uuid = await begin(cluster)
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
        await counts(cluster, home, uuid)
        watcher.cancel()
        with suppress(asyncio.CancelledError):
            await watcher


def test_guest_goes_on_while_the_rest_of_its_memory_comes() -> None:
    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            uuid, number = await halve(cluster)
            await counts(cluster, TARGET, uuid)
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
            uuid, number = await halve(cluster, mirrored("web1", SOURCE, TARGET))
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
            await counts(cluster, TARGET, uuid)

    simulate(scenario())


def test_line_that_breaks_again_and_again_is_not_mended_for_ever() -> None:
    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            uuid = await begin(cluster)
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
            await counts(cluster, TARGET, uuid)

    simulate(scenario())


async def _break_every_line(cluster: SimulatedCluster) -> None:
    while True:
        cluster.cut(SOURCE, TARGET)
        await cluster.machines[SOURCE].guests.guests()  # which notices
        cluster.heal()
        await asyncio.sleep(LINES_LAST_S)


def _where(cluster: SimulatedCluster, uuid: InstanceId) -> list[str]:
    return [name for name, each in cluster.machines.items() if each.guests.lives(uuid)]
