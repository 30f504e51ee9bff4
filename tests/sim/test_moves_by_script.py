"""Instances that go to another cluster as the scripts of their operating system pack them."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import Conflict, GntError, InvalidRequest
from common.model.job import Status
from common.model.template import DiskTemplate
from common.names import JobId
from common.noderpc.operating_systems import DefinitionReport, Script, ScriptOrder
from coordinator.operations.backup.prepare import PrepareExport
from coordinator.operations.devices import DiskRequest
from coordinator.operations.instance.remove import RemoveInstance
from noded.copies.fake_between import FakeBridge
from noded.operating_systems.fake import DEBIAN
from noded.operating_systems.fake_streams import DUMP
from tests.sim.settings import WEB1, create
from tests.sim.stories.backup import debian_with_data
from tests.sim.test_moves_between_clusters import DATA, SECRET, Clusters, export
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, outcome, simulated_cluster

OS = {"os_type": "debian+stable", "osparams": {"mirror": "near"}}
SECRETS = {"osparams_secret": {"root_password": "other"}}


class Scripted(Clusters):
    """Web1 is of an operating system that both clusters can pack and unpack."""

    def __init__(self, here: SimulatedCluster, there: SimulatedCluster, bridge: FakeBridge) -> None:
        super().__init__(here, there, bridge)
        self.source = here.machines["gamma"].operating_systems
        self.target = there.machines["alpha"].operating_systems
        self.run: list[ScriptOrder] = []
        self.source.watch = self.target.watch = self.run.append

    async def begun(self, **changes: Any) -> tuple[JobId, JobId]:
        """Have web1 on its way; return the jobs by which it goes and comes."""
        coming, expected = await self.expected(await self.prepared(), **OS, **SECRETS, **changes)
        told = await self.prepared()
        return await self.here.submit(export(told, expected)), coming

    async def ended(self, going: JobId, coming: JobId) -> list[Status]:
        both = await self.here.finished(going), await self.there.finished(coming)
        return [each.status for each in both]

    @property
    def there_now(self) -> list[str]:
        return list(self.there.machines["alpha"].contents.values())

    @property
    def is_here(self) -> bool:
        written = [*self.here.machines["gamma"].contents.values()]
        return self.here.config.find_instance("web1") is not None and written == [DATA]

    def nothing_is_left(self) -> bool:
        both = (self.here.machines["gamma"], self.there.machines["alpha"])
        return not any(each.copier.known or each.operating_systems.known for each in both)


def tell(story: Callable[[Scripted], Awaitable[None]]) -> None:
    async def scenario() -> None:
        bridge = FakeBridge()
        async with (
            simulated_cluster(bridge=bridge) as here,
            simulated_cluster(1, bridge=bridge) as there,
        ):
            await debian_with_data(here)
            for cluster in (here, there):
                await cluster.run(SECRET)
            await story(Scripted(here, there, bridge))

    simulate(scenario())


def said(job: Any) -> str:
    return "\n".join(entry.message for entry in job.ops[0].log)


def test_what_the_script_here_writes_the_script_there_makes_a_disk_of() -> None:
    async def story(clusters: Scripted) -> None:
        sent: list[str] = []
        streams = clusters.there.machines["alpha"].written.streams
        write = streams.write
        streams.write = lambda disk, word: (sent.append(word), write(disk, word))[1]  # type: ignore[method-assign,func-returns-value]
        going, coming = await clusters.begun()
        assert await clusters.ended(going, coming) == [Status.SUCCESS, Status.SUCCESS]
        assert sent[-1] == f"{DUMP}{DATA}"
        assert clusters.there_now == [DATA]
        assert clusters.here.config.find_instance("web1") is None
        scripts = {(each.script, each.disk): each.parameters for each in clusters.run}
        assert scripts == {
            (Script.EXPORT, 0): {"mirror": "near", "root_password": "sesame"},
            (Script.IMPORT, 0): {"mirror": "near", "root_password": "other"},
        }
        for cluster, job in ((clusters.here, going), (clusters.there, coming)):
            assert "of debian+stable" in said(await cluster.finished(job))
        assert clusters.nothing_is_left()

    tell(story)


@pytest.mark.parametrize("script", [Script.EXPORT, Script.IMPORT])
def test_a_script_that_fails_on_either_side_leaves_the_instance_where_it_was(
    script: Script,
) -> None:
    async def story(clusters: Scripted) -> None:
        clusters.source.failing.add(script)
        clusters.target.failing.add(script)
        going, coming = await clusters.begun()
        assert await clusters.ended(going, coming) == [Status.ERROR, Status.ERROR]
        for cluster, job in ((clusters.here, going), (clusters.there, coming)):
            with pytest.raises(GntError, match="no mirror"):
                outcome(await cluster.finished(job))
        assert clusters.is_here
        assert clusters.there.config.find_instance("web1") is None
        assert clusters.there_now == []
        assert clusters.nothing_is_left()

    tell(story)


async def _without_import(clusters: Scripted) -> None:
    neither = {script: argv for script, argv in DEBIAN.scripts.items() if script.value[:2] != "im"}
    clusters.target.there = (dataclasses.replace(DEBIAN, scripts=neither),)


async def _untrusted_here(clusters: Scripted) -> None:
    clusters.source.there = (dataclasses.replace(DEBIAN, is_trusted=False),)


async def _untrusted_there(clusters: Scripted) -> None:
    clusters.target.there = (dataclasses.replace(DEBIAN, is_trusted=False),)


async def _older_here(clusters: Scripted) -> None:
    told = await clusters.source.definitions()

    async def definitions() -> tuple[DefinitionReport, ...]:
        return tuple(replace(each, tells_endings=False) for each in told)

    clusters.source.definitions = definitions  # type: ignore[method-assign]


@pytest.mark.parametrize(
    "change", [_without_import, _untrusted_here, _untrusted_there, _older_here]
)
def test_whole_disks_are_sent_where_one_of_the_two_has_no_script_that_may_run(
    change: Callable[[Scripted], Awaitable[None]],
) -> None:
    async def story(clusters: Scripted) -> None:
        await change(clusters)
        told = await clusters.prepared()
        coming, expected = await clusters.expected(told, **OS)
        going = await clusters.here.submit(export(told, expected))
        assert await clusters.ended(going, coming) == [Status.SUCCESS, Status.SUCCESS]
        assert clusters.there_now == [DATA]
        assert not clusters.run

    tell(story)


def test_whole_disks_are_sent_if_that_is_said() -> None:
    async def story(clusters: Scripted) -> None:
        order = PrepareExport(instance_name=WEB1, mode="remote", whole_disks=True)
        told = await clusters.here.run(order)
        coming, expected = await clusters.expected(told, **OS)
        going = await clusters.here.submit(export(told, expected, whole_disks=True))
        assert await clusters.ended(going, coming) == [Status.SUCCESS, Status.SUCCESS]
        assert not clusters.run
        assert clusters.there_now == [DATA]

    tell(story)


def test_what_was_agreed_upon_is_held_to() -> None:
    async def story(clusters: Scripted) -> None:
        told = await clusters.prepared()
        coming, expected = await clusters.expected(told, **OS, **SECRETS)
        with pytest.raises(Conflict, match="in the same way"):
            await clusters.here.run(export(told, expected, whole_disks=True))
        clusters.source.there = ()
        with pytest.raises(Conflict, match="script “export” of debian\\+stable writes"):
            await clusters.here.run(export(told, expected))
        with pytest.raises(InvalidRequest, match="do not know the same secret"):
            version, signature, salt = told["handshake"]
            forged = ["gantry-1" if version == "gantry-2" else "gantry-2", signature, salt]
            await clusters.expected(told | {"handshake": forged}, **OS)
        await clusters.there.master.luxi("CancelJob", coming)
        assert (await clusters.there.finished(coming)).status is Status.CANCELED
        assert clusters.is_here
        assert clusters.there_now == []

    tell(story)


def test_what_there_cannot_be_made_is_refused_before_anything_is_sent() -> None:
    async def story(clusters: Scripted) -> None:
        told = await clusters.prepared()
        with pytest.raises(InvalidRequest, match="has no parameter “colour”"):
            await clusters.expected(told, **OS | {"osparams": {"colour": "blue"}})
        assert clusters.there_now == []

    tell(story)


async def amid(clusters: Scripted) -> tuple[JobId, JobId]:
    clusters.bridge.mib_per_s = 1
    jobs = await clusters.begun()
    await asyncio.sleep(20)
    return jobs


def test_a_stream_that_breaks_off_is_begun_anew_by_both_scripts() -> None:
    async def story(clusters: Scripted) -> None:
        going, coming = await amid(clusters)
        clusters.bridge.reaches = False
        await asyncio.sleep(10)
        clusters.bridge.reaches, clusters.bridge.mib_per_s = True, 1024
        assert await clusters.ended(going, coming) == [Status.SUCCESS, Status.SUCCESS]
        assert clusters.there_now == [DATA]
        begun = [each.script for each in clusters.run]
        assert begun.count(Script.EXPORT) > 2, "it was checked, and begun more than once"
        assert begun.count(Script.IMPORT) > 2
        assert clusters.nothing_is_left()

    tell(story)


@pytest.mark.parametrize("side", ["here", "there"])
def test_one_that_is_cancelled_on_its_way_goes_on_where_it_was(side: str) -> None:
    async def story(clusters: Scripted) -> None:
        going, coming = await amid(clusters)
        cluster, job = (clusters.here, going) if side == "here" else (clusters.there, coming)
        await cluster.master.luxi("CancelJob", job)
        assert Status.SUCCESS not in await clusters.ended(going, coming)
        assert clusters.is_here
        assert clusters.there_now == []
        assert clusters.nothing_is_left()

    tell(story)


@pytest.mark.parametrize("after_s", [1, 3, 20, 66, 67])
def test_it_arrives_whatever_becomes_of_the_coordinators(after_s: float) -> None:
    """Parameters that nobody knows any more are not asked for once the scripts go on."""

    async def story(clusters: Scripted) -> None:
        clusters.bridge.mib_per_s = 1
        going, coming = await clusters.begun()
        await asyncio.sleep(after_s)
        for cluster in (clusters.here, clusters.there):
            await cluster.crash_master()
            await cluster.start_master("alpha")
        assert await clusters.ended(going, coming) == [Status.SUCCESS, Status.SUCCESS]
        assert clusters.there_now == [DATA]
        assert clusters.here.config.find_instance("web1") is None
        assert clusters.nothing_is_left()

    tell(story)


def test_it_stays_where_it_was_if_nobody_there_knows_what_is_to_be_recorded() -> None:
    """Private parameters are stored with the instance, and forgotten with a coordinator before."""

    async def story(clusters: Scripted) -> None:
        clusters.bridge.mib_per_s = 1
        going, coming = await clusters.begun(osparams_private={"root_password": "own"})
        await asyncio.sleep(20)
        await clusters.there.crash_master()
        await clusters.there.start_master("alpha")
        assert await clusters.ended(going, coming) == [Status.ERROR, Status.ERROR]
        with pytest.raises(Conflict, match="Give the command again"):
            outcome(await clusters.there.finished(coming))
        assert clusters.is_here
        assert clusters.there.config.find_instance("web1") is None
        assert clusters.nothing_is_left()

    tell(story)


@pytest.mark.parametrize("side", ["here", "there"])
def test_it_arrives_whatever_becomes_of_the_nodeds(side: str) -> None:
    async def story(clusters: Scripted) -> None:
        going, coming = await amid(clusters)
        begun = len(clusters.run)
        cluster, node = (clusters.here, "gamma") if side == "here" else (clusters.there, "alpha")
        await cluster.restart_noded(node, away_s=5.0)
        clusters.bridge.mib_per_s = 1024
        assert await clusters.ended(going, coming) == [Status.SUCCESS, Status.SUCCESS]
        assert len(clusters.run) == begun, "no script was begun anew"
        assert clusters.there_now == [DATA]

    tell(story)


@pytest.mark.parametrize("side", ["here", "there"])
def test_what_was_begun_anew_once_goes_on_when_a_noded_is_restarted(side: str) -> None:
    async def story(clusters: Scripted) -> None:
        going, coming = await amid(clusters)
        clusters.bridge.reaches = False
        await asyncio.sleep(10)
        clusters.bridge.reaches = True
        await asyncio.sleep(20)
        begun = len(clusters.run)
        cluster, node = (clusters.here, "gamma") if side == "here" else (clusters.there, "alpha")
        await cluster.restart_noded(node, away_s=5.0)
        clusters.bridge.mib_per_s = 1024
        assert await clusters.ended(going, coming) == [Status.SUCCESS, Status.SUCCESS]
        assert len(clusters.run) == begun, "no script was begun a third time"
        assert clusters.there_now == [DATA]

    tell(story)


def test_each_disk_has_scripts_of_its_own_and_all_go_at_the_same_time() -> None:
    async def story(clusters: Scripted) -> None:
        await clusters.here.run(RemoveInstance(instance_name=WEB1))
        order = create("web1", "gamma", template=DiskTemplate.FILE, start=False)
        two = (DiskRequest(size="64M"), DiskRequest(size="32M"))
        await clusters.here.run(replace(order, os_type="debian+stable", disks=two))
        files = clusters.here.machines["gamma"].files.contents
        for number, path in enumerate(sorted(files)):
            files[path] = f"disk {number}"
        clusters.run.clear()
        clusters.bridge.mib_per_s = 1
        going, coming = await clusters.begun(disks=[{"size": 64}, {"size": 32}])
        await asyncio.sleep(10)
        assert len(clusters.source.known) == len(clusters.target.known) == 2
        assert await clusters.ended(going, coming) == [Status.SUCCESS, Status.SUCCESS]
        assert sorted(clusters.there_now) == ["disk 0", "disk 1"]
        run = {(each.script, each.disk) for each in clusters.run}
        assert run == {
            (script, disk) for script in (Script.EXPORT, Script.IMPORT) for disk in (0, 1)
        }

    tell(story)
