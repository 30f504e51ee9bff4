"""What scripts of operating systems promise, kept by real processes and by the fake."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from common.errors import InvalidRequest, NodeFailure, NotFound
from common.model.backing import Qcow2Backing
from common.noderpc.operating_systems import Script, ScriptOrder, ScriptReport
from tests.support.script_rigs import (
    DISK,
    RUN,
    FakeRig,
    ProcessRig,
    Rig,
    attached,
    begun,
    ended,
    in_time,
    order,
)


@pytest.fixture(params=["fake", "process"])
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Rig:
    if request.param == "fake":
        return FakeRig()
    if os.geteuid() != 0:
        pytest.skip("scripts get names of processes of their own, for which it takes root")
    return ProcessRig(tmp_path)


def test_a_script_writes_to_its_disks_and_what_it_says_is_told(rig: Rig) -> None:
    async def story() -> None:
        await attached(rig)
        await rig.driver.begin(RUN, order(rig))
        said, report = await ended(rig.driver)
        assert "create of debian+stable" in said
        assert report.problem == ""
        assert report.log.endswith(".log")
        await rig.driver.end(RUN)

    in_time(rig, story())
    assert rig.has_written()


def test_a_script_that_is_begun_again_is_not_run_again(rig: Rig) -> None:
    async def story() -> str:
        await attached(rig)
        for _ in range(2):
            await rig.driver.begin(RUN, order(rig))
        said, _ = await ended(rig.driver)
        await rig.driver.begin(RUN, order(rig))
        again, report = await ended(rig.driver)
        assert report.problem == ""
        assert again == said
        return said

    said = in_time(rig, story())
    assert str(said).count("create of debian+stable") == 1
    assert rig.times() == 1


def test_a_script_goes_on_while_noded_is_started_anew(rig: Rig) -> None:
    async def story() -> None:
        await attached(rig)
        await begun(rig)
        rig.restart_noded()
        said, report = await ended(rig.driver)
        assert "create of debian+stable" in said
        assert report.problem == ""

    in_time(rig, story())
    assert rig.has_written()


def test_a_script_that_fails_is_told_with_its_last_words(rig: Rig) -> None:
    rig.fail(Script.CREATE)

    async def story() -> ScriptReport:
        await attached(rig)
        await rig.driver.begin(RUN, order(rig))
        return (await ended(rig.driver))[1]

    report = in_time(rig, story())
    assert isinstance(report, ScriptReport)
    assert report.problem.startswith(
        "The script create of debian+stable for web1 ended with status 1. It said last: "
    )
    assert report.problem.endswith("no mirror")


def test_a_script_that_is_ended_leaves_nothing_running_and_is_forgotten(rig: Rig) -> None:
    async def story() -> None:
        await attached(rig)
        await rig.driver.begin(RUN, order(rig))
        await rig.driver.end(RUN)
        await rig.driver.end(RUN)
        with pytest.raises(NotFound, match="knows of no such script"):
            await rig.driver.look(RUN, 0)
        await rig.driver.begin(RUN, order(rig))  # the disk is free again
        await rig.driver.end(RUN)

    in_time(rig, story())


def test_a_run_that_has_ended_is_forgotten_with_the_next_for_its_instance(rig: Rig) -> None:
    async def story() -> None:
        await attached(rig)
        await rig.driver.begin(RUN, order(rig))
        await ended(rig.driver)
        await rig.driver.begin("another-run", order(rig))
        await ended(rig.driver, "another-run")
        with pytest.raises(NotFound):
            await rig.driver.look(RUN, 0)

    in_time(rig, story())


def test_a_disk_that_a_guest_uses_is_not_written(rig: Rig) -> None:
    async def story() -> None:
        await attached(rig)
        rig.use()
        with pytest.raises(NodeFailure, match="is in use by a guest"):
            await rig.driver.begin(RUN, order(rig))

    in_time(rig, story())
    assert not rig.has_written()


def test_while_a_script_works_nobody_else_gets_its_disk(rig: Rig) -> None:
    async def story() -> None:
        await attached(rig)
        await rig.driver.begin(RUN, order(rig))
        with pytest.raises(NodeFailure, match="is in use by"):
            await rig.driver.begin("another-run", order(rig))
        await rig.driver.end(RUN)

    in_time(rig, story())


def with_image(wrong: ScriptOrder) -> ScriptOrder:
    """Return the same order, its disk being in QEMU's format."""
    backing = Qcow2Backing(path=f"/srv/{DISK}.qcow2", shared=False)
    disk = replace(wrong.subject.disks[0], backing=backing)
    return replace(wrong, subject=replace(wrong.subject, disks=(disk,)))


def test_what_a_definition_does_not_have_is_refused(rig: Rig) -> None:
    refused: tuple[tuple[ScriptOrder, type[Exception], str], ...] = (
        (order(rig, os="plan9"), NodeFailure, "no operating system “plan9”"),
        (order(rig, os="debian"), InvalidRequest, r"say which: debian\+stable, debian\+testing"),
        (order(rig, os="debian+sarge"), InvalidRequest, "declares no variant “sarge”"),
        (order(rig, os="../debian+stable"), InvalidRequest, "is no name of an operating system"),
        (order(rig, os="debian+../../tmp/x"), InvalidRequest, "is no name of an operating"),
        (replace(order(rig), parameters={"speed": "1"}), InvalidRequest, "no parameter “speed”"),
        (replace(order(rig), parameters={"A=B\n": "1"}), InvalidRequest, "no name of a parameter"),
        (with_image(order(rig)), NodeFailure, "take a disk byte for byte"),
    )

    async def story() -> None:
        await attached(rig)
        for wrong, kind, match in refused:
            with pytest.raises(kind, match=match):
                await rig.driver.check(wrong)
            with pytest.raises(kind, match=match):
                await rig.driver.begin(RUN, wrong)
        await rig.driver.check(replace(order(rig, os="debian+sarge"), may_be_unknown=True))

    in_time(rig, story())


def test_definitions_are_told_with_variants_and_parameters(rig: Rig) -> None:
    async def story() -> None:
        found = {each.name: each for each in await rig.driver.definitions()}["debian"]
        assert found.variants == ("stable", "testing")
        assert dict(found.parameters)["mirror"] == "where packages are"
        assert found.problem == ""
        assert Script.RENAME in found.scripts

    in_time(rig, story())
