"""An instance on its way to another cluster is somewhere, whenever its new node loses its power."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import Stuck
from common.model.job import Status
from common.model.template import DiskTemplate
from common.names import JobId
from coordinator.operations.devices import DiskRequest
from noded.copies.fake_between import FakeBridge
from tests.sim.settings import create, web1_with_data
from tests.sim.stories.backup import debian_with_data
from tests.sim.test_moves_between_clusters import DATA, SECRET, Clusters, export
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.faults import Trap, Watching
from tests.support.network import Trip
from tests.support.places import worth_crashing
from tests.support.story import is_crossing

OS = {"os_type": "debian+stable", "osparams": {"mirror": "near"}}
HEARD_S = 3.0  # by then the other cluster has heard what it was told, and removed the instance
DARK_S = 5.0
TWO = ("512M", "4M")  # one after the other; together within a look


async def two_disks(cluster: SimulatedCluster) -> None:
    order = create("web1", "gamma", template=DiskTemplate.FILE, start=False)
    await cluster.run(replace(order, disks=tuple(DiskRequest(size=size) for size in TWO)))
    for disk in cluster.config.disks_of(cluster.config.instance("web1")):
        cluster.machines["gamma"].files.contents[disk.backing.paths[0]] = DATA


KINDS: dict[str, tuple[Callable[[SimulatedCluster], Awaitable[None]], dict[str, Any]]] = {
    "whole disks": (web1_with_data, {}),
    "scripts": (debian_with_data, OS),
    "two disks": (two_disks, {"disks": [{"size": size} for size in TWO]}),
}


class Dark(Clusters):
    """Web1 goes to ``node``, which is the master there or another one."""

    def __init__(
        self, here: SimulatedCluster, there: SimulatedCluster, bridge: FakeBridge, node: str
    ) -> None:
        super().__init__(here, there, bridge)
        self.node = node

    async def begun(self, wishes: dict[str, Any]) -> tuple[JobId, JobId]:
        """Have web1 expected, and then on its way."""
        coming, expected = await self.expected(await self.prepared(), pnode=self.node, **wishes)
        return await self.here.submit(export(await self.prepared(), expected)), coming

    async def lose_power(self) -> None:
        """Have the node away for a while."""
        await self.there.lose_power(self.node)
        await asyncio.sleep(DARK_S)
        await self.there.machines[self.node].boot()
        if self.node == "alpha":
            await self.there.start_master("alpha")

    async def check(self, going: JobId, coming: JobId) -> None:
        """Have both jobs end, and see who has the instance."""
        jobs = await self.here.finished(going), await self.there.finished(coming)
        for job in jobs:
            failure = job.ops[0].failure
            assert failure is None or failure.code != Stuck.code, failure
        is_there = self.there.config.find_instance("web1") is not None
        if is_there:
            assert set(self.there.machines[self.node].contents.values()) == {DATA}
        if self.here.config.find_instance("web1") is None:
            assert is_there, "the instance is nowhere"
            return
        assert set(self.here.machines["gamma"].contents.values()) == {DATA}
        assert not (await self.guests())[1], "it is run by both, or may be"
        if is_there:
            assert "Look there" in jobs[1].ops[0].failure.message  # type: ignore[union-attr]


Scenario = Callable[[Dark], Awaitable[None]]


def tell(
    node: str, setting: Callable[[SimulatedCluster], Awaitable[None]], story: Scenario
) -> None:
    async def scenario() -> None:
        bridge = FakeBridge()
        async with (
            simulated_cluster(bridge=bridge) as here,
            simulated_cluster(2 if node == "beta" else 1, bridge=bridge) as there,
        ):
            await setting(here)
            for cluster in (here, there):
                await cluster.run(SECRET)
            await story(Dark(here, there, bridge, node))

    simulate(scenario())


def crossings(
    node: str, setting: Callable[[SimulatedCluster], Awaitable[None]], wishes: dict[str, Any]
) -> list[Trip]:
    """Return the calls and commits of the job that takes the instance."""
    watch = Watching(is_crossing)

    async def story(clusters: Dark) -> None:
        told = await clusters.prepared()
        clusters.there.network.faults.append(watch)
        coming, expected = await clusters.expected(told, pnode=node, **wishes)
        going = await clusters.here.submit(export(told, expected))
        both = await clusters.here.finished(going), await clusters.there.finished(coming)
        assert [each.status for each in both] == [Status.SUCCESS, Status.SUCCESS]

    tell(node, setting, story)
    return watch.seen


@pytest.mark.parametrize(
    ("node", "kind"), [("alpha", "whole disks"), ("beta", "scripts"), ("beta", "two disks")]
)
def test_it_is_lost_by_nobody_when_its_new_node_loses_its_power(node: str, kind: str) -> None:
    """At each call and commit: what the other cluster has heard by then it has heard for good."""
    setting, wishes = KINDS[kind]
    trips = crossings(node, setting, wishes)
    disks = len(wishes.get("disks", "1"))
    expected = [n for n, trip in enumerate(trips) if trip.call.name == "copies.begin_expect"]
    for index in worth_crashing(trips):
        if index <= expected[disks - 1]:  # nobody has been told where
            continue

        async def story(clusters: Dark, at: int = index) -> None:
            trap = Trap(is_crossing, at, lambda: None)
            clusters.there.network.faults.append(trap)
            jobs = await clusters.begun(wishes)
            await trap.sprung.wait()
            clusters.there.network.faults.clear()
            await asyncio.sleep(HEARD_S)
            await clusters.lose_power()
            await clusters.check(*jobs)

        try:
            tell(node, setting, story)
        except Exception as error:
            error.add_note(f"{node} has lost its power at {trips[index]}, number {index}")
            raise
