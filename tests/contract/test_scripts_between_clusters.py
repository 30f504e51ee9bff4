"""What scripts of two clusters promise, of which one exports what the other one imports at once.

Alpha is of the one cluster and beta of the other: who is alpha's may delete all as soon as alpha
says that it has arrived.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from common.errors import NodeFailure
from common.names import NodeName
from common.noderpc.copies import BrokenOff, Compression, Offer, Stranger
from common.noderpc.operating_systems import Script
from common.tls.context import CERTIFICATE
from noded.copies.interface import Fetched
from tests.support.clock import simulate
from tests.support.https_node import TestCluster, run
from tests.support.os_definition import write_script
from tests.support.script_streams import (
    ALPHA,
    BETA,
    COPY,
    IMPORT,
    RUN,
    FakeRig,
    RealRig,
    Rig,
    Tell,
    order,
    played,
    stream,
)

WAIT_S = 20.0


@pytest.fixture(params=["fake", "processes"])
def tell(request: pytest.FixtureRequest, tmp_path: Path) -> Tell:
    """Return what runs a story on two nodes that have a disk each."""
    if request.param == "fake":
        return lambda story: simulate(played(FakeRig(), story))
    if os.geteuid() != 0:
        pytest.skip("scripts get names of processes of their own, for which it takes root")
    return lambda story: run(played(RealRig(tmp_path, TestCluster(tmp_path / "identities")), story))


def stranger(rig: Rig, node: str) -> Stranger:
    certificate = ""
    if isinstance(rig, RealRig):
        identity = rig.cluster.directory / f"{rig.cluster.name}-{node}-0.0"
        certificate = (identity / CERTIFICATE).read_text()
    return Stranger(name=NodeName(node), certificate=certificate)


async def expect(rig: Rig, *, until_confirmed: bool = False) -> Offer:
    beta = rig.nodes[BETA]
    await beta.systems.begin(RUN, order(rig, BETA, Script.IMPORT))
    return await beta.copier.expect(
        COPY, stream(), stranger(rig, ALPHA), WAIT_S, until_confirmed=until_confirmed
    )


async def bring(rig: Rig, offer: Offer) -> None:
    alpha = rig.nodes[ALPHA]
    await alpha.systems.begin(RUN, order(rig, ALPHA, Script.EXPORT))
    await alpha.copier.bring(
        COPY, stream(), stranger(rig, BETA), rig.host(BETA), offer, Compression.FAST, 0
    )


async def ended(rig: Rig, node: str, is_it: Callable[[Fetched], object] | None = None) -> None:
    """Return when all is there, or as much as wanted."""
    while True:
        now = await rig.nodes[node].copier.look(COPY)
        if is_it(now) if is_it else now.has_ended:
            return
        await asyncio.sleep(0.02)


def is_same(rig: Rig) -> bool:
    if isinstance(rig, RealRig):
        return rig.path(ALPHA).read_bytes() == rig.path(BETA).read_bytes()
    return rig.is_filled()


def test_what_one_script_writes_another_one_reads_and_both_sides_know(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        await bring(rig, await expect(rig))
        await ended(rig, ALPHA)
        await ended(rig, BETA)
        assert is_same(rig)

    tell(story)


def test_who_is_to_hear_it_when_it_is_confirmed_hears_it_then(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        await bring(rig, await expect(rig, until_confirmed=True))
        await ended(rig, BETA, lambda now: now.is_there)
        assert not (await rig.nodes[ALPHA].copier.look(COPY)).has_ended
        await rig.nodes[BETA].copier.confirm(COPY)
        await ended(rig, ALPHA)
        await ended(rig, BETA)
        assert is_same(rig)

    tell(story)


@pytest.mark.parametrize("script", [Script.EXPORT, Script.IMPORT])
def test_a_script_that_fails_at_its_end_counts_on_both_sides(tell: Tell, script: Script) -> None:
    async def story(rig: Rig) -> None:
        rig.script(script, fails=True)
        await bring(rig, await expect(rig))
        for node in (ALPHA, BETA):
            with pytest.raises(NodeFailure, match="ended with status 1") as raised:
                await ended(rig, node)
            assert not isinstance(raised.value, BrokenOff)

    tell(story)


def test_what_broke_off_is_begun_anew_where_it_was_expected(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        rig.hold()
        offer = await expect(rig)
        await bring(rig, offer)
        await ended(rig, BETA, lambda now: now.done)
        if isinstance(rig, RealRig):
            end_process(rig, ALPHA, "bring")
        if isinstance(rig, FakeRig):
            rig.wires.bridge.reaches = False
        for node in (ALPHA, BETA):
            with pytest.raises(BrokenOff):
                await ended(rig, node)
            await rig.nodes[node].systems.end(RUN)
        rig.let_go()
        if isinstance(rig, FakeRig):
            rig.wires.bridge.reaches = True
        assert await expect(rig) == offer
        await bring(rig, offer)
        await ended(rig, ALPHA)
        await ended(rig, BETA)
        assert is_same(rig)

    tell(story)


@pytest.fixture
def rig(tmp_path: Path) -> RealRig:
    if os.geteuid() != 0:
        pytest.skip("scripts get names of processes of their own, for which it takes root")
    rig = RealRig(tmp_path, TestCluster(tmp_path / "identities"))
    held = f"{IMPORT}; touch {tmp_path}/read; until [ -e {tmp_path}/end ]; do sleep 0.05; done"
    write_script(tmp_path / "os/debian", Script.IMPORT, f"set -o pipefail; {held}")
    return rig


async def all_read(rig: RealRig) -> None:
    """Return when the script that imports has read all; it goes on."""
    while True:
        if (rig.root / "read").exists():
            return
        await asyncio.sleep(0.02)


def end_process(rig: RealRig, node: str, side: str) -> None:
    found = rig.reals[node].copier._home(COPY, side).process()
    assert found is not None
    with found:
        found.signal(signal.SIGKILL)


def test_nobody_hears_that_it_is_there_before_the_script_has_ended(rig: RealRig) -> None:
    async def story(_: Rig) -> None:
        await bring(rig, await expect(rig))
        await all_read(rig)
        for node in (ALPHA, BETA):
            assert not (await rig.nodes[node].copier.look(COPY)).has_ended
        (rig.root / "end").touch()
        await ended(rig, ALPHA)
        await ended(rig, BETA)

    run(played(rig, story))


def test_who_did_not_hear_it_hears_it_when_he_comes_again_and_no_script_reads_twice(
    rig: RealRig,
) -> None:
    async def story(_: Rig) -> None:
        offer = await expect(rig)
        await bring(rig, offer)
        await all_read(rig)
        end_process(rig, ALPHA, "bring")
        with pytest.raises(BrokenOff):
            await ended(rig, ALPHA)
        (rig.root / "end").touch()
        await rig.nodes[ALPHA].systems.end(RUN)
        await bring(rig, offer)
        await ended(rig, ALPHA)
        await ended(rig, BETA)
        assert is_same(rig)

    run(played(rig, story))


def test_a_script_that_is_killed_has_brought_nothing(rig: RealRig) -> None:
    async def story(_: Rig) -> None:
        await bring(rig, await expect(rig))
        await all_read(rig)
        await rig.nodes[BETA].systems.end(RUN)
        for node in (ALPHA, BETA):
            with pytest.raises(NodeFailure):
                await ended(rig, node)

    run(played(rig, story))
