"""Migrations between nodes that hang, lose their power, their noded or their wires, at any step.

Whatever happens, a guest never runs twice, and never nowhere but for lost power or with its
record saying that it has to be settled where it is.
"""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from itertools import product

import pytest
from msgspec.structs import replace

from common.errors import Conflict, NodeFailure, Unreachable
from common.model.job import Status
from common.names import InstanceId, InstanceName
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.reboot import RebootInstance, RebootType
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.node.modify import ModifyNode
from noded.hypervisor.fake_guest import Phase
from tests.sim.mishaps import Mishap, befall, never_twice, reaches
from tests.sim.settings import BETA, GAMMA, WEB1, create, mirrored
from tests.sim.steps_of_jobs import until_step
from tests.support.clock import simulate
from tests.support.cluster import outcome, simulated_cluster
from tests.support.seeds import is_thorough, seeds

SOURCE, TARGET = "beta", "gamma"
AFTER_ALL_S = 300.0


def pairs() -> Iterator[tuple[Phase, Mishap, Mishap]]:
    """Yield a third of the mishaps to one node, some to both at once; all if there is time."""
    kinds, seed = tuple(Mishap), seeds()[0]
    for number, (phase, source, target) in enumerate(product(Phase, kinds, kinds)):
        alone = (source is Mishap.NONE) != (target is Mishap.NONE)
        mine = (phase + kinds.index(source) + kinds.index(target) + seed) % 3 == 0
        if (alone and mine) or is_thorough() or number % 36 == seed % 36 + phase:
            yield phase, source, target


@pytest.mark.parametrize(
    ("phase", "source", "target"),
    list(pairs()),
    ids=lambda each: getattr(each, "name", each).lower(),
)
def test_guest_runs_once_whatever_happens_to_its_nodes(
    phase: Phase, source: Mishap, target: Mishap
) -> None:
    simulate(_move_and_settle(phase, source, target))


async def _move_and_settle(phase: Phase, source: Mishap, target: Mishap) -> None:
    async with simulated_cluster(3, seed=seeds()[0]) as cluster:
        await cluster.run(create("web1", SOURCE))
        uuid = InstanceId(cluster.config.instance("web1").uuid)
        guests = {name: machine.guests for name, machine in cluster.machines.items()}
        watcher = asyncio.ensure_future(never_twice(cluster))
        number = await cluster.submit(MigrateInstance(instance_name=WEB1, target_node=TARGET))
        await reaches(cluster, SOURCE, number, phase)
        async with asyncio.TaskGroup() as mishaps:
            mishaps.create_task(befall(cluster, SOURCE, source))
            mishaps.create_task(befall(cluster, TARGET, target))
            job = await cluster.finished(number)
        told = "; ".join(str(op.failure) for op in job.ops)
        await asyncio.sleep(AFTER_ALL_S)
        lost_power = Mishap.LOSES_POWER in (source, target)
        where = [name for name in guests if guests[name].lives(uuid)]
        instance = cluster.config.instance("web1")
        if job.status is Status.SUCCESS and not lost_power:
            assert where == [TARGET], told
        if where:
            may_be_on = {instance.primary_node, *instance.maybe_on}
            assert cluster.config.node(where[0]).uuid in may_be_on, told
        else:
            assert lost_power or instance.maybe_on, f"it is gone: {told}"
        await cluster.run(MigrateInstance(instance_name=WEB1, cleanup=True))
        instance = cluster.config.instance("web1")
        assert instance.maybe_on == ()
        home = cluster.config.nodes[instance.primary_node].name
        assert [n for n in guests if guests[n].lives(uuid)] in ([home], [] if lost_power else None)
        await cluster.run(StartInstance(instance_name=WEB1))
        assert [name for name in guests if guests[name].lives(uuid)] == [home]
        watcher.cancel()
        with suppress(asyncio.CancelledError):
            await watcher


def test_guest_that_took_minutes_to_leave_runs_when_its_target_has_been_away_at_the_end() -> None:
    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            slowly = {"migration_bandwidth": 1}
            await cluster.run(replace(create("web1", SOURCE), hvparams=slowly))
            uuid = InstanceId(cluster.config.instance("web1").uuid)
            number = await cluster.submit(MigrateInstance(instance_name=WEB1, target_node=TARGET))
            await reaches(cluster, SOURCE, number, Phase.SWITCHING)
            await befall(cluster, TARGET, Mishap.NODED)
            assert outcome(await cluster.finished(number)) is None
            assert cluster.machines[TARGET].guests.lives(uuid)

    simulate(scenario())


def test_guest_whose_source_is_lost_when_it_has_left_is_told_to_run_on_its_target() -> None:
    async def scenario() -> None:
        async with simulated_cluster(3) as cluster:
            await cluster.run(mirrored("web1", SOURCE, TARGET))
            number = await cluster.submit(MigrateInstance(instance_name=WEB1))
            await until_step(cluster, number, f"clear web1 away from {SOURCE}")
            await cluster.lose_power(SOURCE)
            job = await cluster.finished(number)
            log = "\n".join(entry.message for entry in job.ops[0].log)
            assert "Undoing" not in log
            assert "What was done before the point of no return stays." in log
            with pytest.raises(Unreachable, match=f"web1 runs on {TARGET}, and is recorded there"):
                outcome(job)
            await cluster.machines[SOURCE].boot()
            await cluster.run(MigrateInstance(instance_name=WEB1, cleanup=True))
            assert (await cluster.snapshot()).guests == {
                "alpha": {},
                SOURCE: {},
                TARGET: {"web1": "running"},
            }

    simulate(scenario())


def test_instance_is_not_started_while_it_may_be_on_a_node_that_cannot_be_asked() -> None:
    async def scenario() -> None:
        async with simulated_cluster(5, seed=seeds()[0]) as cluster:
            await cluster.run(create("web1", SOURCE))
            uuid = InstanceId(cluster.config.instance("web1").uuid)
            number = await cluster.submit(MigrateInstance(instance_name=WEB1, target_node=TARGET))
            await reaches(cluster, SOURCE, number, Phase.SWITCHING)
            cluster.network.isolate(TARGET)
            await cluster.lose_power(SOURCE)
            job = await cluster.finished(number)
            assert job.status is Status.ERROR
            await cluster.machines[SOURCE].boot()
            with pytest.raises(Conflict, match="may be on gamma, which cannot be asked"):
                await cluster.run(StartInstance(instance_name=WEB1))
            for operation in (
                MigrateInstance(instance_name=WEB1, target_node="alpha"),
                FailOverInstance(instance_name=WEB1, target_node="alpha"),
                RemoveInstance(instance_name=WEB1),
            ):
                with pytest.raises(Conflict, match="may be on beta or gamma"):
                    await cluster.run(operation)
            # An operator knows that gamma is dead: that is his word.
            await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
            await cluster.run(StartInstance(instance_name=WEB1))
            assert cluster.machines[SOURCE].guests.lives(uuid)
            assert cluster.config.instance("web1").maybe_on == ()

    simulate(scenario())


def test_guest_that_hangs_is_not_moved_and_nothing_is_made() -> None:
    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            await cluster.run(create("web1", SOURCE))
            uuid = InstanceId(cluster.config.instance("web1").uuid)
            cluster.machines[SOURCE].guests.hang(uuid)
            for operation in (
                MigrateInstance(instance_name=WEB1, target_node=TARGET),
                StartInstance(instance_name=WEB1),
                RebootInstance(instance_name=WEB1, reboot_type=RebootType.SOFT),
            ):
                with pytest.raises(Conflict, match="has not answered for"):
                    await cluster.run(operation)
            assert not cluster.machines[TARGET].guests.has(uuid)
            assert cluster.config.instance("web1").maybe_on == ()
            await cluster.run(FailOverInstance(instance_name=WEB1, target_node=TARGET))
            assert not cluster.machines[SOURCE].guests.has(uuid)
            assert cluster.machines[TARGET].guests.lives(uuid)

    simulate(scenario())


def test_guest_is_left_alone_whose_target_lacks_what_it_needs() -> None:
    """As the certificate of its display: the target is asked before anything is done."""

    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            await cluster.run(create("web1", SOURCE))
            uuid = InstanceId(cluster.config.instance("web1").uuid)
            source, target = (cluster.machines[name].guests for name in (SOURCE, TARGET))
            target.lacks = "there is no certificate"
            before, number = cluster.config.instance("web1"), source.number(uuid)
            for operation in (
                MigrateInstance(instance_name=WEB1, target_node=TARGET),
                FailOverInstance(instance_name=WEB1, target_node=TARGET),
            ):
                with pytest.raises(NodeFailure, match="there is no certificate"):
                    await cluster.run(operation)
            assert cluster.config.instance("web1") == before
            assert not target.has(uuid)
            assert source.lives(uuid)
            assert source.number(uuid) >= number, "it was started anew"

    simulate(scenario())


def test_shutdown_ends_an_instance_wherever_it_may_be() -> None:
    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            await cluster.run(create("web1", SOURCE))
            uuid = InstanceId(cluster.config.instance("web1").uuid)
            number = await cluster.submit(MigrateInstance(instance_name=WEB1, target_node=TARGET))
            await reaches(cluster, SOURCE, number, Phase.MEMORY)
            cluster.machines[SOURCE].guests.hang(uuid)
            job = await cluster.finished(number)
            assert job.status is Status.ERROR
            assert cluster.machines[TARGET].guests.has(uuid)
            await cluster.run(ShutDownInstance(instance_name=WEB1, force=True))
            assert not any(machine.guests.has(uuid) for machine in cluster.machines.values())
            assert cluster.config.instance("web1").maybe_on == ()

    simulate(scenario())


def test_node_that_comes_back_is_cleared_of_guests_that_ended_there() -> None:
    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            await cluster.run(create("web1", SOURCE))
            await cluster.run(create("web2", SOURCE))
            machine = cluster.machines[SOURCE]
            await machine.kill_noded()
            uuids = [InstanceId(cluster.config.instance(name).uuid) for name in ("web1", "web2")]
            for uuid in uuids:
                machine.guests.crash(uuid)  # every process of the node was killed
            await cluster.run(ModifyNode(node_name=BETA, offline=True, force=True))
            await cluster.run(FailOverInstance(instance_name=WEB1, target_node=TARGET))
            await machine.start_noded()
            await cluster.run(ModifyNode(node_name=BETA, offline=False))
            assert [machine.guests.has(uuid) for uuid in uuids] == [False, True]
            assert {tap.instance for tap in await machine.network.taps()} == {uuids[1]}
            assert tuple(machine.attached) == cluster.config.instance("web2").disks
            await cluster.run(StartInstance(instance_name=InstanceName("web2")))
            assert machine.guests.lives(uuids[1])

    simulate(scenario())
