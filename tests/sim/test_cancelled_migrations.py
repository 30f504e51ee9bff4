"""Migrations that are cancelled while their source hears nothing, and then perhaps lose the master.

The guest goes on moving meanwhile, and nobody knows how far. Whatever is said then, it runs once,
or its record says that it may be elsewhere, which can be settled.
"""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from itertools import product

import pytest

from common.errors import Unreachable
from common.model.job import Status
from common.names import InstanceId, JobId
from coordinator.operations.instance.migrate import MigrateInstance
from noded.hypervisor.fake_guest import Phase
from tests.sim.settings import WEB1, create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.seeds import one_in, seeds

SOURCE, TARGET, NEXT_MASTER = "beta", "gamma", "delta"
LOOK_EVERY_S = 0.01


class Silence(StrEnum):
    """Why the source hears nothing."""

    MOMENT = "is cut off for a moment"
    LONG = "is cut off for longer than anybody insists"
    NODED = "has its noded restarted"


def cases() -> Iterator[tuple[Phase, Silence, bool]]:
    """Yield some of them by seed; all if there is time."""
    for phase, silence, is_taken_over in product(Phase, Silence, (False, True)):
        number = phase + list(Silence).index(silence) + is_taken_over
        if number % one_in(3) == seeds()[0] % one_in(3):
            yield phase, silence, is_taken_over


@pytest.mark.parametrize(
    ("phase", "silence", "is_taken_over"),
    list(cases()),
    ids=lambda each: each.name.lower() if isinstance(each, Phase | Silence) else str(each),
)
def test_guest_runs_once_when_its_move_is_cancelled_while_its_source_hears_nothing(
    phase: Phase, silence: Silence, is_taken_over: bool
) -> None:
    simulate(_move_and_cancel(phase, silence, is_taken_over=is_taken_over))


async def _move_and_cancel(phase: Phase, silence: Silence, *, is_taken_over: bool) -> None:
    async with simulated_cluster(5, seed=seeds()[0]) as cluster:
        await cluster.run(create("web1", SOURCE))
        uuid = InstanceId(cluster.config.instance("web1").uuid)
        watcher = asyncio.ensure_future(_never_twice(cluster, uuid))
        number = await cluster.submit(MigrateInstance(instance_name=WEB1, target_node=TARGET))
        await _reaches(cluster, number, uuid, phase)
        being_silent = asyncio.ensure_future(_be_silent(cluster, silence))
        cancelling = asyncio.ensure_future(_cancel(cluster, number))
        await asyncio.sleep(1)
        if is_taken_over:
            await cluster.crash_master()
            await cluster.take_over(NEXT_MASTER)
        await being_silent
        job = await cluster.finished(number)
        was_promised = await cancelling
        why = f"{was_promised=}; {job.status}: {job.ops[0].failure}"
        assert job.status is Status.CANCELED or not was_promised, why
        instance = cluster.config.instance("web1")
        if job.status is Status.ERROR:  # it could not be settled in time
            assert silence is Silence.LONG, why
            home = cluster.config.nodes[instance.primary_node].name
            assert instance.maybe_on or _where(cluster, uuid) == [home], why
            await cluster.run(MigrateInstance(instance_name=WEB1, cleanup=True))
            instance = cluster.config.instance("web1")
        home = cluster.config.nodes[instance.primary_node].name
        assert (_where(cluster, uuid), instance.maybe_on) == ([home], ()), why
        if job.status is not Status.ERROR:
            assert home == (TARGET if job.status is Status.SUCCESS else SOURCE), why
        watcher.cancel()
        with suppress(asyncio.CancelledError):
            await watcher


def test_whoever_cancels_a_move_waits_until_a_source_that_hangs_says_where_the_guest_is() -> None:
    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            await cluster.run(create("web1", SOURCE))
            uuid = InstanceId(cluster.config.instance("web1").uuid)
            number = await cluster.submit(MigrateInstance(instance_name=WEB1, target_node=TARGET))
            await _reaches(cluster, number, uuid, Phase.MEMORY)
            guests = cluster.machines[SOURCE].guests
            guests.hang(uuid)
            cancelling = asyncio.ensure_future(_cancel(cluster, number))
            await asyncio.sleep(30)
            guests.wake(uuid)
            job = await cluster.finished(number)
            assert job.status is Status.CANCELED, job.ops[0].failure
            await cancelling
            assert _where(cluster, uuid) == [SOURCE]
            assert cluster.config.instance("web1").maybe_on == ()

    simulate(scenario())


async def _cancel(cluster: SimulatedCluster, number: JobId) -> bool:
    """Wish that a job ends; tell whether it was promised."""
    with suppress(Unreachable, ConnectionResetError):
        done, _ = await cluster.master.luxi("CancelJob", number)
        return bool(done)
    return False


async def _be_silent(cluster: SimulatedCluster, silence: Silence) -> None:
    """Have the source hear nothing from whoever is master; what it sends arrives."""
    if silence is Silence.NODED:
        await cluster.machines[SOURCE].kill_noded()
        await asyncio.sleep(5)
        await cluster.machines[SOURCE].start_noded()
        return
    for name in ("alpha", NEXT_MASTER):
        cluster.cut(name, SOURCE, one_way=True)
    await asyncio.sleep(5 if silence is Silence.MOMENT else 150)
    cluster.heal()


async def _reaches(
    cluster: SimulatedCluster, number: JobId, uuid: InstanceId, phase: Phase
) -> None:
    """Return when a move has come so far, or is over: its last step takes but a moment."""
    guests = cluster.machines[SOURCE].guests
    while (reached := guests.phase(uuid)) is None or reached < phase:
        job = cluster.master.running.queue.find(number)
        if job is None or job.status.is_final:
            return
        await asyncio.sleep(LOOK_EVERY_S / 10)


async def _never_twice(cluster: SimulatedCluster, uuid: InstanceId) -> None:
    while True:
        where = _where(cluster, uuid)
        assert len(where) < 2, f"web1 runs on {' and '.join(where)}"
        await asyncio.sleep(LOOK_EVERY_S)


def _where(cluster: SimulatedCluster, uuid: InstanceId) -> list[str]:
    return [name for name, each in cluster.machines.items() if each.guests.lives(uuid)]
