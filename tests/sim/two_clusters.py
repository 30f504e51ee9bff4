"""An instance on its way between two clusters, disturbed: who has it then, and who runs it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from msgspec.structs import replace

from common.errors import Stuck
from common.model.instance import AdminState
from common.model.job import Status
from common.model.template import DiskTemplate
from common.names import JobId
from common.rpc.server import Reply
from coordinator.operations.devices import DiskRequest
from noded.copies.fake_between import FakeBridge
from tests.sim.settings import create, web1_with_data
from tests.sim.stories.backup import debian_with_data
from tests.sim.test_moves_between_clusters import DATA, SECRET, Clusters, export
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.faults import Watching
from tests.support.network import Fault, Trip
from tests.support.places import worth_crashing
from tests.support.seeds import one_in
from tests.support.story import is_crossing

OS = {"os_type": "debian+stable", "osparams": {"mirror": "near"}}
DARK_S = 5.0
TWO = ("512M", "4M")  # one after the other; together within a look
MOMENT_S = 0.05


async def two_disks(cluster: SimulatedCluster) -> None:
    """Begin with web1 running on gamma, with data on two disks."""
    order = create("web1", "gamma", template=DiskTemplate.FILE)
    await cluster.run(replace(order, disks=tuple(DiskRequest(size=size) for size in TWO)))
    for disk in cluster.config.disks_of(cluster.config.instance("web1")):
        cluster.machines["gamma"].files.contents[disk.backing.paths[0]] = DATA


class Kind(NamedTuple):
    """What is on its way: how it is made here, and what is told of it there."""

    setting: Callable[[SimulatedCluster], Awaitable[None]]
    wishes: dict[str, Any]
    disks: int = 1


KINDS = {
    "whole disks": Kind(web1_with_data, {}),
    "scripts": Kind(debian_with_data, OS),
    "two disks": Kind(two_disks, {"disks": [{"size": size} for size in TWO]}, disks=2),
}


class Jobs(NamedTuple):
    going: JobId  # here
    coming: JobId  # there


class Moving(Clusters):
    """Web1 goes from gamma to ``node`` of the other cluster, its master or another one."""

    def __init__(
        self, here: SimulatedCluster, there: SimulatedCluster, bridge: FakeBridge, node: str
    ) -> None:
        super().__init__(here, there, bridge)
        self.node = node

    async def begun(
        self, wishes: dict[str, Any], fault: Fault | None = None, side: str = "there"
    ) -> Jobs:
        """Have web1 expected, and then on its way; a ``fault`` sees all of the job of a side."""
        told = await self.prepared()
        if fault and side == "there":
            self.there.network.faults.append(fault)
        coming, expected = await self.expected(told, pnode=self.node, **wishes)
        told = await self.prepared()
        if fault and side == "here":
            self.here.network.faults.append(fault)
        return Jobs(await self.here.submit(export(told, expected)), coming)

    async def check(self, jobs: Jobs) -> None:
        """Have both jobs end, and see who has the instance."""
        ended = await self.here.finished(jobs.going), await self.there.finished(jobs.coming)
        for job in ended:
            failure = job.ops[0].failure
            assert failure is None or failure.code != Stuck.code, failure
        is_there = self.there.config.find_instance("web1") is not None
        if is_there:
            assert set(self.there.machines[self.node].contents.values()) == {DATA}
        here = self.here.config.find_instance("web1")
        runs_here, runs_there = await self.guests()
        if here is None:
            assert is_there, "the instance is nowhere"
            return
        if is_there and here.admin_state is AdminState.DOWN and not runs_here:
            return  # what is left here is to be removed
        assert set(self.here.machines["gamma"].contents.values()) == {DATA}
        assert not runs_there, "it is run by both, or may be"
        if is_there:
            assert "Look there" in ended[1].ops[0].failure.message  # type: ignore[union-attr]


@dataclass
class Starts(Fault):
    """Sees whether a guest runs in both clusters when it has been started in one."""

    clusters: Moving
    twice: bool = False

    async def coming(self, trip: Trip, reply: Reply) -> Reply:
        if trip.call.name == "instances.ensure_running":
            here, there = await self.clusters.guests()
            self.twice = self.twice or bool(set(here) & set(there))
        return reply


@dataclass
class Held(Fault):
    """Holds the answer to crossing number ``index`` until it is let go of."""

    index: int
    sprung: asyncio.Event = field(default_factory=asyncio.Event)
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    _count: int = 0

    async def coming(self, trip: Trip, reply: Reply) -> Reply:
        if is_crossing(trip):
            self._count += 1
            if self._count == self.index + 1:
                self.sprung.set()
                await self.opened.wait()
        return reply


Scenario = Callable[[Moving], Awaitable[None]]


def tell(node: str, kind: Kind, story: Scenario) -> None:
    """Tell a story of two clusters, in which nothing ever runs twice."""

    async def scenario() -> None:
        bridge = FakeBridge()
        async with (
            simulated_cluster(bridge=bridge) as here,
            simulated_cluster(2 if node == "beta" else 1, bridge=bridge) as there,
        ):
            await kind.setting(here)
            for cluster in (here, there):
                await cluster.run(SECRET)
            clusters = Moving(here, there, bridge, node)
            starts = Starts(clusters)
            for cluster in (here, there):
                cluster.network.faults.append(starts)
            await story(clusters)
            assert not starts.twice, "it ran in both clusters"

    simulate(scenario())


def crossings(node: str, kind: Kind, side: str = "there") -> list[Trip]:
    """Return the calls and commits of the job that takes the instance, or sends it from here."""
    watch = Watching(is_crossing)

    async def story(clusters: Moving) -> None:
        jobs = await clusters.begun(kind.wishes, watch, side)
        both = await clusters.here.finished(jobs.going), await clusters.there.finished(jobs.coming)
        assert [each.status for each in both] == [Status.SUCCESS, Status.SUCCESS]

    tell(node, kind, story)
    return watch.seen


def on_its_way(trips: Sequence[Trip], kind: Kind, turn: int) -> list[int]:
    """Return at which crossings it is worth to disturb one that is expected, or sent, by then.

    Where time matters that is every other one, or fewer: which, its ``turn`` decides.
    """
    begins = ("copies.begin_expect", "copies.begin_send")
    begun = [n for n, trip in enumerate(trips) if trip.call.name in begins]
    worth = [index for index in worth_crashing(list(trips)) if index > begun[kind.disks - 1]]
    return worth[turn % one_in(2) :: one_in(2)]
