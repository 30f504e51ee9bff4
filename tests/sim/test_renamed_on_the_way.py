"""Instances that come from another cluster under another name, which is told to what is within."""

from collections.abc import Callable
from typing import Any

import pytest

from common.model.instance import AdminState
from common.model.job import Job, Status
from common.names import InstanceName, JobId
from common.noderpc.operating_systems import Script
from coordinator.operations.backup.prepare import PrepareExport
from coordinator.operations.instance.rename import RenameInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from tests.sim.settings import WEB1
from tests.sim.test_moves_between_clusters import DATA, export
from tests.sim.test_moves_by_script import OS, Scripted, said, tell
from tests.support.faults import Trap
from tests.support.network import Trip

RENAMED = "debian+stable for shop"  # what the script writes to the disk that another one has made
SHOPS_NAME = InstanceName("shop")
SHOP: dict[str, Any] = {"instance_name": SHOPS_NAME}


async def arrived(clusters: Scripted, jobs: tuple[JobId, JobId]) -> Job:
    """Return the job that took web1 as shop, which is not here any more."""
    assert await clusters.ended(*jobs) == [Status.SUCCESS, Status.SUCCESS]
    assert clusters.here.config.find_instance("web1") is None
    config = clusters.there.config
    assert config.find_instance("web1") is None
    assert config.instance("shop").admin_state is AdminState.UP
    assert clusters.nothing_is_left()
    return await clusters.there.finished(jobs[1])


def test_what_comes_under_another_name_is_told_it_before_it_is_started() -> None:
    async def story(clusters: Scripted) -> None:
        await arrived(clusters, await clusters.begun(**SHOP))
        renaming = clusters.run[-1]
        assert (renaming.script, renaming.disk, renaming.old_name) == (Script.RENAME, None, "web1")
        assert renaming.subject.name == "shop"
        assert renaming.parameters == {"mirror": "near", "root_password": "other"}
        assert clusters.there_now == [RENAMED]

    tell(story)


def test_what_comes_as_whole_disks_is_told_it_too() -> None:
    async def story(clusters: Scripted) -> None:
        order = PrepareExport(instance_name=WEB1, mode="remote", whole_disks=True)
        told = await clusters.here.run(order)
        coming, expected = await clusters.expected(told, **OS, **SHOP)
        going = await clusters.here.submit(export(told, expected, whole_disks=True))
        await arrived(clusters, (going, coming))
        assert [each.script for each in clusters.run] == [Script.RENAME]
        assert clusters.there_now == [RENAMED]

    tell(story)


def test_what_cannot_be_renamed_within_is_here_and_it_is_said_how_it_can_be_later() -> None:
    async def story(clusters: Scripted) -> None:
        clusters.target.failing.add(Script.RENAME)
        job = await arrived(clusters, await clusters.begun(**SHOP))
        assert "shop may have the name web1 on its disks still" in said(job)
        told = (
            "“gnt-instance rename --no-script shop web1”, and then “gnt-instance rename web1 shop”"
        )
        assert told in said(job)

        clusters.target.failing.clear()
        for order in (
            ShutDownInstance(instance_name=SHOPS_NAME),
            RenameInstance(instance_name=SHOPS_NAME, new_name=WEB1, run_script=False),
            RenameInstance(instance_name=WEB1, new_name=SHOPS_NAME),
        ):
            await clusters.there.run(order)
        renaming = clusters.run[-1]
        assert (renaming.script, renaming.old_name) == (Script.RENAME, "web1")
        assert clusters.there_now == [RENAMED]

    tell(story)


def _begins_renaming(trip: Trip) -> bool:
    return trip.call.name == "os.begin" and b'"rename"' in trip.body


def _lets_go(trip: Trip) -> bool:
    return trip.call.name == "copies.ensure_ended"


@pytest.mark.parametrize(
    ("which", "expected"), [(_begins_renaming, RENAMED), (_lets_go, DATA)], ids=["begun", "not yet"]
)
def test_where_nobody_knows_secrets_any_more_only_what_is_begun_goes_on(
    which: Callable[[Trip], bool], expected: str
) -> None:
    """The other cluster has let go of it: it stays here, whatever its coordinator has forgotten."""

    async def story(clusters: Scripted) -> None:
        there = clusters.there
        trap = Trap(which, 0, lambda: None)
        there.network.faults.append(trap)
        jobs = await clusters.begun(**SHOP)
        await trap.sprung.wait()
        there.network.faults.clear()
        await there.crash_master()
        await there.start_master("alpha")
        job = await arrived(clusters, jobs)
        assert clusters.there_now == [expected]
        is_told = "what is confidential for the script is not known any more" in said(job)
        assert is_told == (expected == DATA)

    tell(story)
