"""What scripts that export and import promise, kept by real processes and by the fakes.

alpha has a disk and exports it to a dump of beta's, which imports that onto a disk of its own.
"""

import os
from pathlib import Path

import pytest

from common.errors import NodeFailure, NotFound
from common.noderpc.copies import BrokenOff
from common.noderpc.operating_systems import Script
from tests.support.clock import simulate
from tests.support.https_node import TestCluster, run
from tests.support.os_definition import write_script
from tests.support.script_rigs import ended
from tests.support.script_streams import (
    ALPHA,
    BETA,
    COPY,
    EXPORT,
    OTHER,
    RUN,
    FakeRig,
    RealRig,
    Rig,
    Tell,
    begin,
    begin_export,
    begin_import,
    dump,
    exported,
    fetched,
    order,
    played,
    seen,
    stream,
)


@pytest.fixture(params=["fake", "processes"])
def tell(request: pytest.FixtureRequest, tmp_path: Path) -> Tell:
    """Return what runs a story on two nodes that have a disk each."""
    if request.param == "fake":
        return lambda story: simulate(played(FakeRig(), story))
    if os.geteuid() != 0:
        pytest.skip("scripts get names of processes of their own, for which it takes root")
    return lambda story: run(played(RealRig(tmp_path, TestCluster(tmp_path / "identities")), story))


def test_what_a_script_has_exported_is_what_the_other_one_imports(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        report = await exported(rig)
        assert report.problem == ""
        await begin_import(rig)
        await fetched(rig, OTHER)
        _, report = await ended(rig.nodes[BETA].systems, RUN)
        assert report.problem == ""
        assert rig.is_filled()

    tell(story)


def test_a_script_that_fails_has_its_copy_fail_whatever_it_has_written(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        rig.script(Script.EXPORT, fails=True)
        await begin_export(rig)
        with pytest.raises(NodeFailure, match="ended with status 1"):
            await fetched(rig)
        _, report = await ended(rig.nodes[ALPHA].systems, RUN)
        assert "ended with status 1. It said last:" in report.problem
        assert "no mirror" in report.problem

    tell(story)


def test_both_go_on_while_noded_is_started_anew(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        rig.hold()
        await begin_export(rig)
        rig.restart_noded()
        rig.let_go()
        await fetched(rig)
        _, report = await ended(rig.nodes[ALPHA].systems, RUN)
        assert report.problem == ""

    tell(story)


def test_what_broke_off_is_not_taken_up_again_but_begun_anew(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        alpha, beta = rig.nodes[ALPHA], rig.nodes[BETA]
        rig.hold()
        await begin_export(rig)
        await seen(rig, lambda now: now.done)
        rig.break_off()
        with pytest.raises(BrokenOff):
            await fetched(rig)
        # The one who offers it is still there, and has nothing to offer any more.
        await begin(rig, ALPHA, stream(), dump())
        with pytest.raises(BrokenOff):
            await fetched(rig)
        await alpha.copier.end(COPY)
        with pytest.raises(NotFound, match="that happens once"):
            await begin(rig, ALPHA, stream(), dump())
        await alpha.systems.end(RUN)
        await beta.copier.end(COPY)
        rig.let_go()
        await exported(rig)
        await begin_import(rig)
        await fetched(rig, OTHER)
        await ended(beta.systems, RUN)
        assert rig.is_filled()

    tell(story)


def test_one_that_waits_for_the_other_side_is_ended(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        systems = rig.nodes[ALPHA].systems
        await systems.begin(RUN, order(rig, ALPHA, Script.EXPORT))
        await systems.end(RUN)
        with pytest.raises(NotFound):
            await systems.look(RUN, 0)
        with pytest.raises(NotFound):
            await begin(rig, ALPHA, stream(), dump())

    tell(story)


def test_how_much_a_script_expects_to_write_is_told_while_it_writes(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("scripts get names of processes of their own, for which it takes root")
    rig = RealRig(tmp_path, TestCluster(tmp_path / "identities"))
    says = "echo 3000000 >&$EXP_SIZE_FD; echo and more >&$EXP_SIZE_FD; echo told >&2"
    text = EXPORT.format(root=tmp_path)
    # A plain shell knows descriptors of one digit only.
    (tmp_path / "os/debian/export").write_text(f"#!/bin/sh\n{says}; {text}\n")

    async def story(rig: Rig) -> None:
        rig.hold()
        await begin_export(rig)
        await seen(rig, lambda now: now.expected == 3000000)
        rig.let_go()
        await fetched(rig)
        text, report = await ended(rig.nodes[ALPHA].systems, RUN)
        assert (report.problem, text.splitlines()[0]) == ("", "told")
        whole = await rig.nodes[BETA].copier.look(COPY)
        assert whole.total == whole.done >= 2 << 20, "what it was, whatever was expected"

    run(played(rig, story))


def test_a_script_that_stops_reading_is_told_of(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("scripts get names of processes of their own, for which it takes root")
    rig = RealRig(tmp_path, TestCluster(tmp_path / "identities"))
    write_script(tmp_path / "os/debian", Script.IMPORT, "head -c 6 > /dev/null; exit 3")

    async def story(rig: Rig) -> None:
        await exported(rig)
        await begin_import(rig)
        with pytest.raises(NodeFailure, match="before it had read all"):
            await fetched(rig, OTHER)
        _, report = await ended(rig.nodes[BETA].systems, RUN)
        assert "ended with status 3" in report.problem

    run(played(rig, story))


def test_what_a_script_wrote_is_never_put_onto_a_disk_as_it_is(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("scripts get names of processes of their own, for which it takes root")
    rig = RealRig(tmp_path, TestCluster(tmp_path / "identities"))

    async def story(rig: Rig) -> None:
        await rig.nodes[ALPHA].systems.begin(RUN, order(rig, ALPHA, Script.EXPORT))
        await begin(rig, ALPHA, stream(), rig.nodes[BETA].disk)
        with pytest.raises(NodeFailure, match="only one that imports can make the disk"):
            await fetched(rig)

    run(played(rig, story))
    assert not any((tmp_path / "beta/disks/disk").read_bytes())
