"""A failover to any node goes on from one copy: whenever its node dies, the guest is not lost."""

import itertools
from collections.abc import Awaitable, Callable

import pytest

from common.errors import Conflict
from common.model.job import Job
from common.names import NodeName
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.startup import StartInstance
from tests.sim.mirrored_pair import behind, guests, homes, lose, tell
from tests.sim.settings import GAMMA, WEB1
from tests.support.cluster import SimulatedCluster
from tests.support.faults import Gate, Watching, Which
from tests.support.network import Trip

RUNS = {"web1": "running"}
Loss = Callable[[SimulatedCluster], Awaitable[None]]
ASKED = ("mirrors.status", "disks.attach", "disks.detach", "instances.ensure_running")


def anywhere(*, waits: bool) -> FailOverInstance:
    return FailOverInstance(instance_name=WEB1, target_node="alpha", wait_for_sync=waits)


def concerns_disks(trip: Trip) -> bool:
    return trip.is_of_a_job and trip.call.name in ASKED


def number(index: int) -> Which:
    """Return what picks one of the calls about disks."""
    count = itertools.count()
    return lambda trip: concerns_disks(trip) and next(count) == index


def calls(*, waits: bool, dead: NodeName | None) -> list[str]:
    """Return the calls about disks of a failover that nothing disturbs."""
    seen = Watching(concerns_disks)

    async def story(cluster: SimulatedCluster) -> None:
        if dead:
            await lose(cluster, dead)
        cluster.network.faults.append(seen)
        await cluster.run(anywhere(waits=waits))

    tell(story)
    return [str(trip) for trip in seen.seen]


async def lose_power(cluster: SimulatedCluster) -> None:
    await cluster.lose_power("beta")


async def cut_off(cluster: SimulatedCluster) -> None:
    cluster.network.isolate("beta")


def ending(index: int, lose_beta: Loss, *, waits: bool, dead: NodeName | None) -> str:
    """Have beta, which has the good copy, be lost before a call; return what comes of the guest."""
    ends: list[str] = []

    async def story(cluster: SimulatedCluster) -> None:
        if dead:
            await lose(cluster, dead)
        due = Gate(number(index))
        cluster.network.faults.append(due)
        job = await cluster.submit(anywhere(waits=waits))
        await due.until_held()
        await lose_beta(cluster)
        due.opened.set()
        ends.append(await _end(cluster, await cluster.finished(job), lose_beta))

    tell(story)
    return ends[0]


async def _end(cluster: SimulatedCluster, job: Job, lose_beta: Loss) -> str:
    """Check how a job has ended whose guest's good copy is not there any more."""
    there, failure = await guests(cluster), job.ops[0].failure
    if there.get("alpha"):
        assert (there, homes(cluster)) == ({"alpha": RUNS}, ["alpha", "beta"])
        return "goes on"
    assert failure is not None
    if there:
        assert (there, homes(cluster)) == ({"gamma": RUNS}, ["gamma", "beta"])
        assert "gamma" not in behind(cluster)
        return "goes back"
    await _bring_back(cluster)
    if homes(cluster) == ["alpha", "beta"]:
        assert "with that node there, “gnt-instance startup web1” starts it on" in failure.message
        await cluster.run(StartInstance(instance_name=WEB1))
    elif lose_beta is cut_off:
        assert "with beta there, “gnt-instance failover -n alpha web1” starts" in failure.message
        await cluster.run(anywhere(waits=False))
    else:
        assert "with “gnt-instance failover --ignore-consistency web1”" in failure.message
        with pytest.raises(Conflict, match="may lack what was written last"):
            await cluster.run(anywhere(waits=False))
        await cluster.run(FailOverInstance(instance_name=WEB1, ignore_consistency=True))
    assert list((await guests(cluster)).values()) == [RUNS]
    return "is told"


async def _bring_back(cluster: SimulatedCluster) -> None:
    cluster.heal()
    if not cluster.machines["beta"].has_power:
        await cluster.machines["beta"].boot()
    await cluster.settle(30.0)


@pytest.mark.parametrize(
    ("lose_beta", "waits", "dead", "comes"),
    [
        (lose_power, False, None, ["goes back", "is told", "goes on"]),
        (lose_power, False, GAMMA, ["is told", "goes on"]),
        (lose_power, True, None, ["goes back", "goes on"]),
        (lose_power, True, GAMMA, ["is told", "goes on"]),
        (cut_off, False, GAMMA, ["is told", "goes on"]),
    ],
)
def test_whenever_the_good_copy_is_lost_a_guest_goes_back_or_on_or_it_is_told_how(
    lose_beta: Loss, waits: bool, dead: NodeName | None, comes: list[str]
) -> None:
    made = calls(waits=waits, dead=dead)
    first = made.index("disks.attach to alpha")  # before that it is refused
    started = made.index("instances.ensure_running to alpha")
    places = range(first, started + 1)
    ends = [ending(place, lose_beta, waits=waits, dead=dead) for place in places]
    assert [end for end, _ in itertools.groupby(ends)] == comes
    if comes[0] == "goes back":
        assert ends.count("is told") <= 2, "from the record to the start there are two calls"
