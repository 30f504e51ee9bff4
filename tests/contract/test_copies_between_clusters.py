"""What copying to a node of another cluster promises, kept by real processes and by the fake."""

import asyncio
import os
import signal
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from common.errors import NodeFailure
from common.names import MiB, NodeName
from common.noderpc.copies import BrokenOff, Compression, Offer, Stranger
from common.noderpc.disks import Access
from common.tls.context import CERTIFICATE
from noded.copies.chunks import CHUNK
from noded.copies.driver import ProcessCopier
from noded.copies.interface import Fetched
from tests.contract.test_copies import (
    ADDRESSES,
    COPY,
    SIZE,
    SLOW,
    FakeRig,
    ProcessRig,
    certificate_of,
)
from tests.support.clock import simulate
from tests.support.copying import told
from tests.support.disks import file_disk
from tests.support.https_node import LOCALHOST, TestCluster, run

WAIT_S = 20.0
NODES = ("alpha", "beta")


class FakeClusters(FakeRig):
    """Alpha is of one cluster, beta of another one."""

    def stranger(self, node: str) -> Stranger:
        return Stranger(name=NodeName(node), certificate=certificate_of(node))

    def kill_side(self, node: str) -> None:
        between = self.wires.copiers[ADDRESSES[node]]._between
        if node == "alpha":
            between._brought[COPY].problem = BrokenOff("killed", done=1)


class ProcessClusters(ProcessRig):
    """As the fake; each cluster has certificates of its own."""

    def __init__(self, root: Path) -> None:
        clusters = {name: TestCluster(root / f"identities-{name}") for name in NODES}
        self.identities = {name: clusters[name].identity(name) for name in NODES}
        super().__init__(root, clusters["alpha"])

    def restart_noded(self, node: str) -> None:
        storage = self.storages[node]
        self.copiers[node] = ProcessCopier(
            self.root / f"run-{node}", identity=self.identities[node],
            address=LOCALHOST, open_disk=storage.open,
        )  # fmt: skip

    def stranger(self, node: str) -> Stranger:
        certificate = (self.identities[node] / CERTIFICATE).read_text()
        return Stranger(name=NodeName(node), certificate=certificate)

    def kill_side(self, node: str) -> None:
        self.end_process(node, "bring" if node == "alpha" else "fetch")

    def end_process(self, node: str, side: str) -> None:
        copier = self.copiers[node]
        assert isinstance(copier, ProcessCopier)
        found = copier._home(COPY, side).process()
        assert found is not None
        with found:
            found.signal(signal.SIGKILL)


Rig = FakeClusters | ProcessClusters
Story = Callable[[Rig], Awaitable[None]]
Tell = Callable[[Story], None]


def _for_real(rig: ProcessClusters, story: Story) -> None:
    try:
        run(told(rig, story, COPY))
    finally:
        for descriptor in rig.opened:
            os.close(descriptor)


@pytest.fixture(params=["fake", "processes"])
def tell(request: pytest.FixtureRequest, tmp_path: Path) -> Tell:
    return telling(request.param, tmp_path)


def telling(kind: str, tmp_path: Path) -> Tell:
    """Return what runs a story on two nodes, of two clusters, that have a disk each."""

    def in_virtual_time(story: Story) -> None:
        async def scenario() -> None:
            await told(FakeClusters(), story, COPY)

        simulate(scenario())

    def in_real_time(story: Story) -> None:
        _for_real(ProcessClusters(tmp_path), story)

    return in_virtual_time if kind == "fake" else in_real_time


@pytest.fixture
def for_real(tmp_path: Path) -> Callable[[Callable[[ProcessClusters], Awaitable[None]]], None]:
    """Tell what the fake has no notion of."""

    def told(story: Callable[[ProcessClusters], Awaitable[None]]) -> None:
        rig = ProcessClusters(tmp_path)
        _for_real(rig, lambda _: story(rig))

    return told


async def expect(rig: Rig, wait_s: float = WAIT_S, *, until_confirmed: bool = False) -> Offer:
    return await rig.copiers["beta"].expect(
        COPY, rig.disks["beta"], rig.stranger("alpha"), wait_s, until_confirmed=until_confirmed
    )


async def bring(
    rig: Rig,
    offer: Offer,
    *,
    rate: int = 0,
    to: Stranger | None = None,
    until_confirmed: bool = False,
) -> None:
    await rig.copiers["alpha"].bring(
        COPY, rig.disks["alpha"], to or rig.stranger("beta"), rig.host("beta"), offer,
        Compression.NONE, rate, until_confirmed=until_confirmed,
    )  # fmt: skip


async def seen(rig: Rig, node: str, is_it: Callable[[Fetched], object]) -> Fetched:
    """Return how far one side is as soon as that is as wanted."""
    while True:
        now = await rig.copiers[node].look(COPY)
        if is_it(now):
            return now
        await asyncio.sleep(0.05)


async def ended(rig: Rig, node: str) -> Fetched:
    return await seen(rig, node, lambda now: now.has_ended)


def test_everything_arrives_and_both_sides_know(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        await bring(rig, await expect(rig))
        for node in NODES:
            assert (await ended(rig, node)).done == SIZE * CHUNK
        assert rig.is_filled("beta")

    tell(story)


def test_it_is_expected_where_it_was_however_often_that_is_asked(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        offer = await expect(rig)
        assert await expect(rig) == offer
        await bring(rig, offer)
        await ended(rig, "beta")
        assert await expect(rig) == offer
        assert (await rig.copiers["beta"].look(COPY)).has_ended

    tell(story)


def test_it_goes_on_while_nodeds_are_restarted(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        offer = await expect(rig)
        await bring(rig, offer, rate=SLOW)
        await seen(rig, "beta", lambda now: now.done)
        for node in NODES:
            rig.restart_noded(node)
        assert await expect(rig) == offer
        await bring(rig, offer)
        await ended(rig, "beta")
        assert rig.is_filled("beta")

    tell(story)


def test_who_broke_off_comes_again_and_goes_on(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        offer = await expect(rig)
        await bring(rig, offer, rate=SLOW)
        await seen(rig, "beta", lambda now: now.done)
        rig.kill_side("alpha")
        with pytest.raises(BrokenOff):
            await ended(rig, "alpha")
        await bring(rig, offer)
        for node in NODES:
            await ended(rig, node)
        assert rig.is_filled("beta")

    tell(story)


def test_a_wrong_secret_brings_nothing(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        offer = await expect(rig)
        await bring(rig, Offer(port=offer.port, secret="0" * len(offer.secret)))
        with pytest.raises(NodeFailure):
            await ended(rig, "alpha")
        assert not rig.is_filled("beta")

    tell(story)


def test_nothing_is_brought_to_another_node_than_is_meant(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        await bring(rig, await expect(rig), to=rig.stranger("alpha"))
        with pytest.raises(NodeFailure):
            await ended(rig, "alpha")
        assert not rig.is_filled("beta")

    tell(story)


def test_nobody_else_brings_anything(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        offer = await rig.copiers["beta"].expect(
            COPY, rig.disks["beta"], rig.stranger("beta"), WAIT_S
        )
        await bring(rig, offer)
        with pytest.raises(NodeFailure):
            await ended(rig, "alpha")
        assert not rig.is_filled("beta")

    tell(story)


def test_it_is_given_up_when_nobody_comes(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        await expect(rig, wait_s=1.0)
        with pytest.raises(NodeFailure, match="Nobody has come from alpha"):
            await ended(rig, "beta")

    tell(story)


@pytest.mark.parametrize("node", NODES)
def test_a_disk_that_a_guest_uses_is_neither_sent_nor_filled(tell: Tell, node: str) -> None:
    async def story(rig: Rig) -> None:
        rig.use(node)
        with pytest.raises(NodeFailure, match="in use by a guest, a copy, or"):
            await bring(rig, await expect(rig))

    tell(story)


def test_nothing_of_it_is_left_when_it_is_ended(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        await bring(rig, await expect(rig), rate=SLOW)
        for node in ("beta", "alpha", "beta"):
            await rig.copiers[node].end(COPY)
        for node in NODES:
            await rig.storages[node].detach(rig.disks[node])
            await rig.storages[node].ensure_absent(rig.disks[node])

    tell(story)


def test_where_it_was_expected_it_is_expected_by_another_process(
    for_real: Callable[[Callable[[ProcessClusters], Awaitable[None]]], None],
) -> None:
    """What was told the other cluster holds, and what has come is not sent again."""

    async def story(rig: ProcessClusters) -> None:
        offer = await expect(rig)
        await bring(rig, offer, rate=SLOW)
        await seen(rig, "beta", lambda now: now.done)
        rig.kill_side("beta")
        with pytest.raises(BrokenOff):
            await ended(rig, "alpha")
        with pytest.raises(BrokenOff):
            await ended(rig, "beta")
        assert await expect(rig) == offer
        await bring(rig, offer)
        assert (await ended(rig, "alpha")).received < 10 * CHUNK
        await ended(rig, "beta")
        assert rig.is_filled("beta")

    for_real(story)


def test_strangers_who_come_first_keep_nobody_out(
    for_real: Callable[[Callable[[ProcessClusters], Awaitable[None]]], None],
) -> None:
    async def story(rig: ProcessClusters) -> None:
        offer = await expect(rig)
        strangers = [socket.create_connection((LOCALHOST, offer.port)) for _ in range(8)]
        await bring(rig, offer)
        for node in NODES:
            await ended(rig, node)
        for stranger in strangers:
            stranger.close()
        assert rig.is_filled("beta")

    for_real(story)


def test_a_disk_that_is_too_small_is_told_to_who_brings_it(
    for_real: Callable[[Callable[[ProcessClusters], Awaitable[None]]], None],
) -> None:
    async def story(rig: ProcessClusters) -> None:
        small = file_disk(rig.disks["beta"].id, f"{rig.root}/beta/small", size=MiB(2))
        await rig.storages["beta"].ensure_present(small)
        await rig.storages["beta"].attach(small, Access.SOLE)
        rig.disks["beta"] = small
        await bring(rig, await expect(rig))
        with pytest.raises(NodeFailure, match="make it larger"):
            await ended(rig, "beta")
        with pytest.raises(NodeFailure):
            await ended(rig, "alpha")

    for_real(story)
