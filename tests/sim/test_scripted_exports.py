"""Exports and imports by the scripts of an instance's operating system."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import InvalidRequest, NodeFailure
from common.model.instance import AdminState
from common.model.job import Status
from common.model.template import DiskTemplate
from common.names import InstanceName, JobId, MiB
from common.noderpc.operating_systems import Script, ScriptOrder
from coordinator.operations.backup.description import read_description
from coordinator.operations.backup.export import ExportInstance
from coordinator.operations.backup.importing import ImportInstance
from coordinator.operations.base import Operation
from coordinator.operations.devices import DiskRequest
from coordinator.operations.instance.remove import RemoveInstance
from noded.operating_systems.fake import DEBIAN
from tests.sim.settings import WEB1, create
from tests.sim.stories.backup import debian_with_data
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, outcome, simulated_cluster

BOTH = (Script.EXPORT, Script.IMPORT)
DATA, DUMP = "data of web1", "dump of data of web1"
EXPORT = ExportInstance(instance_name=WEB1, target_node="beta")
IMPORT = ImportInstance(instance_name=InstanceName("shop"), src_node="beta", src_path="web1",
                        pnode="gamma")  # fmt: skip
RENAMED = "debian+stable for shop"  # what the script writes to the disk that another one has made


def tell(story: Callable[[SimulatedCluster], Awaitable[None]]) -> None:
    """Begin with web1 on gamma, stopped, with data that a script of its system can export."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await debian_with_data(cluster)
            await story(cluster)

    simulate(scenario())


def scripts_on(cluster: SimulatedCluster, node: str) -> list[ScriptOrder]:
    """Return a list to which each script that is checked or run on a node is added."""
    seen: list[ScriptOrder] = []
    cluster.machines[node].operating_systems.watch = seen.append
    return seen


def copying(seen: list[ScriptOrder]) -> list[ScriptOrder]:
    return [each for each in seen if each.script in BOTH]


def contents(cluster: SimulatedCluster, node: str) -> list[str]:
    return sorted(cluster.machines[node].contents.values())


def test_a_script_writes_each_dump_and_another_makes_the_disk_of_it() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        seen = scripts_on(cluster, "gamma")
        job = await cluster.finished(await cluster.submit(EXPORT))
        assert any("--whole-disks keeps all" in entry.message for entry in job.ops[0].log)
        assert contents(cluster, "beta") == [DUMP]
        assert {(each.script, each.disk) for each in seen} == {(Script.EXPORT, 0)}
        assert seen[-1].parameters == {"mirror": "near", "root_password": "sesame"}
        ((config, _),) = cluster.machines["beta"].exports.finished.values()
        said = read_description(config, "web1")
        assert (said.os, said.is_whole_disks) == ("debian+stable", False)
        seen.clear()
        await cluster.run(replace(IMPORT, osparams_secret={"root_password": "other"}, start=True))
        assert contents(cluster, "gamma") == [DATA, RENAMED]
        assert {(each.script, each.disk) for each in seen[:-1]} == {(Script.IMPORT, 0)}
        assert seen[-1].subject.name == "shop"
        assert seen[-1].parameters == {"mirror": "near", "root_password": "other"}
        assert cluster.config.instance("shop").admin_state is AdminState.UP
        for name in ("beta", "gamma"):
            assert cluster.machines[name].operating_systems.known == ()
            assert cluster.machines[name].copier.known == ()

    tell(story)


def test_what_is_imported_under_another_name_is_told_it() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(EXPORT)
        seen = scripts_on(cluster, "gamma")
        await cluster.run(IMPORT)
        renaming = seen[-1]
        assert (renaming.script, renaming.disk, renaming.old_name) == (Script.RENAME, None, "web1")
        assert contents(cluster, "gamma") == [DATA, RENAMED]
        seen.clear()
        await cluster.run(RemoveInstance(instance_name=WEB1))
        await cluster.run(replace(IMPORT, instance_name=WEB1))
        assert {each.script for each in seen} == {Script.IMPORT}

    tell(story)


def test_what_cannot_be_renamed_within_is_imported_and_it_is_said() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(EXPORT)
        cluster.machines["gamma"].operating_systems.failing.add(Script.RENAME)
        job = await cluster.finished(await cluster.submit(IMPORT))
        assert job.status is Status.SUCCESS
        assert any("may have the name web1 on its disks" in each.message for each in job.ops[0].log)
        assert cluster.config.find_instance("shop") is not None
        assert cluster.machines["gamma"].operating_systems.known == ()

    tell(story)


def test_whole_disks_are_copied_if_that_is_said_or_there_is_no_script() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        neither = {script: argv for script, argv in DEBIAN.scripts.items() if script not in BOTH}
        for machine in cluster.machines.values():
            machine.operating_systems.there = (dataclasses.replace(DEBIAN, scripts=neither),)
        await cluster.run(EXPORT)
        assert contents(cluster, "beta") == [DATA]
        for machine in cluster.machines.values():
            machine.operating_systems.there = (DEBIAN,)
        await cluster.run(replace(EXPORT, whole_disks=True))
        assert contents(cluster, "beta") == [DATA]
        with pytest.raises(InvalidRequest, match="none is run: what the export has are whole"):
            await cluster.run(replace(IMPORT, osparams_secret={"root_password": "other"}))
        await cluster.run(IMPORT)
        assert contents(cluster, "gamma") == [DATA, DATA]

    tell(story)


def test_disks_that_no_script_can_read_are_kept_as_a_whole_and_it_is_said_why() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            order = create("web1", "gamma", template=DiskTemplate.FILE, start=False)
            image = DiskRequest(size="64M", format="qcow2")
            await cluster.run(
                replace(order, os_type="debian+stable", no_install=True, disks=(image,))
            )
            job = await cluster.finished(await cluster.submit(EXPORT))
            assert job.status is Status.SUCCESS
            assert any("has one in the format qcow2" in each.message for each in job.ops[0].log)
            ((config, _),) = cluster.machines["beta"].exports.finished.values()
            assert read_description(config, "web1").is_whole_disks

    simulate(scenario())


def test_what_a_script_has_written_needs_one_that_reads_it() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(EXPORT)
        exports = cluster.machines["beta"].exports
        config, sizes = exports.finished["web1"]
        exports.finished["web1"] = config, dict.fromkeys(sizes, MiB(7))
        cluster.machines["gamma"].operating_systems.there = ()
        with pytest.raises(InvalidRequest, match="needs that operating system, with a script"):
            await cluster.run(IMPORT)
        assert cluster.config.find_instance("shop") is None

    tell(story)


@pytest.mark.parametrize("script", [Script.EXPORT, Script.IMPORT])
def test_a_script_that_fails_leaves_everything_as_it_was(script: Script) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(EXPORT)
        before = await cluster.snapshot()
        cluster.machines["gamma"].operating_systems.failing.add(script)
        order = EXPORT if script is Script.EXPORT else IMPORT
        with pytest.raises(NodeFailure, match="no mirror"):
            await cluster.run(order)
        assert await cluster.snapshot() == before

    tell(story)


def test_what_cannot_be_run_is_refused_before_anything_is_done() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(EXPORT)
        before = await cluster.snapshot()
        with pytest.raises(InvalidRequest, match="has no parameter “colour”"):
            await cluster.run(replace(IMPORT, osparams={"colour": "blue"}))
        assert await cluster.snapshot() == before

    tell(story)


async def amid_copy(cluster: SimulatedCluster, order: Operation[Any, Any]) -> JobId:
    """Submit what copies a disk, and return when a part of it has arrived."""
    cluster.wires.mib_per_s = 1
    number = await cluster.submit(order)
    await asyncio.sleep(10)
    return number


@pytest.mark.parametrize("node", ["beta", "gamma"])
@pytest.mark.parametrize("order", [EXPORT, IMPORT])
def test_a_stream_that_breaks_off_is_begun_anew_from_its_beginning(
    order: Operation[Any, Any], node: str
) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        if order is IMPORT:
            await cluster.run(EXPORT)
        seen = scripts_on(cluster, "gamma")
        number = await amid_copy(cluster, order)
        cluster.machines[node].copier.power_off()
        cluster.wires.mib_per_s = 1024
        outcome(await cluster.finished(number))
        assert len(copying(seen)) == 3  # checked, and begun twice
        where, expected = ("beta", [DUMP]) if order is EXPORT else ("gamma", [DATA, RENAMED])
        assert contents(cluster, where) == expected

    tell(story)


@pytest.mark.parametrize("order", [EXPORT, IMPORT])
def test_a_script_goes_on_while_noded_and_the_coordinator_are_started_anew(
    order: Operation[Any, Any],
) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        if order is IMPORT:
            await cluster.run(EXPORT)
        seen = scripts_on(cluster, "gamma")
        number = await amid_copy(cluster, order)
        begun = len(seen)
        for node in ("gamma", "beta"):
            await cluster.restart_noded(node, away_s=5.0)
        await cluster.crash_master()
        await cluster.start_master("alpha")
        cluster.wires.mib_per_s = 1024
        outcome(await cluster.finished(number))
        assert len(copying(seen)) == begun
        where, expected = ("beta", [DUMP]) if order is EXPORT else ("gamma", [DATA, RENAMED])
        assert contents(cluster, where) == expected

    tell(story)


def test_what_was_copied_before_it_broke_off_says_nothing_of_what_is_copied_since() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        number = await cluster.submit(EXPORT)
        await asyncio.sleep(1)  # its dump is there, and its script has not ended yet
        await cluster.crash_master()
        gamma, beta = cluster.machines["gamma"], cluster.machines["beta"]
        for lost in (gamma.copier, gamma.operating_systems, beta.copier):
            lost.power_off()
        beta.exports.words.clear()  # as whoever begins anew does
        cluster.wires.mib_per_s = 4
        await cluster.start_master("alpha")
        outcome(await cluster.finished(number))
        assert contents(cluster, "beta") == [DUMP]

    tell(story)


def test_a_node_that_loses_its_power_is_not_left_with_half_a_dump() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        number = await amid_copy(cluster, EXPORT)
        await cluster.lose_power("gamma")
        await asyncio.sleep(5)
        await cluster.machines["gamma"].boot()
        cluster.wires.mib_per_s = 1024
        outcome(await cluster.finished(number))
        assert contents(cluster, "beta") == [DUMP]

    tell(story)


@pytest.mark.parametrize("order", [EXPORT, IMPORT])
def test_a_job_that_is_cancelled_ends_its_script(order: Operation[Any, Any]) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        if order is IMPORT:
            await cluster.run(EXPORT)
        before = await cluster.snapshot()
        number = await amid_copy(cluster, order)
        await cluster.master.luxi("CancelJob", number)
        assert (await cluster.finished(number)).status is Status.CANCELED
        assert cluster.machines["gamma"].operating_systems.known == ()
        assert await cluster.snapshot() == before

    tell(story)
