"""What copying from node to node promises, kept by real processes and by the fake."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

import pytest

from common.errors import GntError, NodeFailure
from common.model.backing import FileBacking
from common.names import DiskId, NodeName
from common.noderpc.copies import BrokenOff, Compression, Offer, Peer
from common.noderpc.disks import DiskSpec
from noded.copies.chunks import CHUNK
from noded.copies.device import claim
from noded.copies.driver import ProcessCopier
from noded.copies.fake import FakeCopier, FakeWires
from noded.copies.interface import Copier, Fetched
from noded.storage.directories import Directories
from noded.storage.fake import FakeFiles, FakeStorage
from noded.storage.file import FileStorage
from noded.storage.interface import Storage
from tests.support.clock import simulate
from tests.support.copying import told
from tests.support.disks import file_disk, only_files
from tests.support.https_node import LOCALHOST, TestCluster, run

DISK = DiskId("dddddddd-0000-4000-8000-00000000000a")
COPY = "4711-copy-0"
SIZE = 24  # MiB
SLOW = 4  # MiB per second; three times as much is sent
ADDRESSES = {"alpha": "192.0.2.1", "beta": "192.0.2.2"}


class Rig(Protocol):
    """Two nodes with a disk of one name each, and ways to break what goes on between them."""

    copiers: dict[str, Copier]
    storages: dict[str, Storage]
    disks: dict[str, DiskSpec]

    def peer(self, node: str) -> Peer: ...
    def host(self, node: str) -> str: ...
    def fill(self, node: str) -> None: ...
    def is_filled(self, node: str) -> bool: ...
    def restart_noded(self, node: str) -> None: ...
    def kill(self, node: str, side: str) -> None: ...
    def use(self, node: str) -> None: ...


def certificate_of(node: str) -> str:
    """Return what a node that only pretends shows to others."""
    return f"certificate of {node}"


class FakeRig:
    def __init__(self) -> None:
        self.wires = FakeWires(mib_per_s=16)
        self.users: set[str] = set()
        self.copiers: dict[str, Copier] = {}
        self.fakes = {name: self._storage() for name in ADDRESSES}
        self.storages: dict[str, Storage] = {**self.fakes}
        for name, address in ADDRESSES.items():
            self.copiers[name] = FakeCopier(
                name, address, self.wires, storages=only_files(self.fakes[name]),
                contents=self.fakes[name],
                is_guests=lambda _, name=name: name in self.users,  # type: ignore[misc]
                certificate=lambda name=name: certificate_of(name),  # type: ignore[misc]
            )  # fmt: skip
        self.disks = {name: file_disk(DISK, "/srv/local/disk", size=SIZE) for name in ADDRESSES}

    def _storage(self) -> FakeStorage:
        directories = Directories(local="/srv/local")
        return FakeStorage(lambda: directories, local=FakeFiles(), shared=FakeFiles())

    def peer(self, node: str) -> Peer:
        return Peer(name=NodeName(node))

    def host(self, node: str) -> str:
        return ADDRESSES[node]

    def fill(self, node: str) -> None:
        self.fakes[node].write(self.disks[node], "data")

    def is_filled(self, node: str) -> bool:
        return self.fakes[node].read(self.disks[node]) == "data"

    def restart_noded(self, node: str) -> None:
        pass

    def kill(self, node: str, side: str) -> None:
        copier = self.wires.copiers[ADDRESSES[node]]
        if side == "offer":
            copier._offered.clear()
        else:
            copier._fetching[COPY].problem = BrokenOff("killed", done=1)

    def use(self, node: str) -> None:
        self.users.add(node)


class ProcessRig:
    def __init__(self, root: Path, cluster: TestCluster) -> None:
        self.root, self.cluster = root, cluster
        self.copiers: dict[str, Copier] = {}
        self.storages: dict[str, Storage] = {}
        self.disks: dict[str, DiskSpec] = {}
        self.opened: list[int] = []
        for name in ADDRESSES:
            (root / name).mkdir()
            directories = Directories(local=str(root / name))
            self.storages[name] = FileStorage(lambda directories=directories: directories)  # type: ignore[misc]
            self.disks[name] = file_disk(DISK, f"{root}/{name}/disk", size=SIZE)
            self.restart_noded(name)

    def restart_noded(self, node: str) -> None:
        storage = self.storages[node]
        self.copiers[node] = ProcessCopier(
            self.root / f"run-{node}", identity=self.cluster.identity(node), address=LOCALHOST,
            open_disk=storage.open,
        )  # fmt: skip

    def peer(self, node: str) -> Peer:
        return Peer(name=NodeName(node), key=self.cluster.key(node))

    def host(self, node: str) -> str:
        return LOCALHOST

    def path(self, node: str) -> Path:
        backing = self.disks[node].backing
        assert isinstance(backing, FileBacking)
        return Path(backing.path)

    def fill(self, node: str) -> None:
        """Write random bytes, text that is easily packed, and leave a hole."""
        with self.path(node).open("r+b") as file:
            file.write(os.urandom(10 * CHUNK + 4711))
            file.seek(20 * CHUNK + 17)
            file.write(b"all work and no play " * 100_000)

    def is_filled(self, node: str) -> bool:
        other = "alpha" if node == "beta" else "beta"
        return self.path(node).read_bytes() == self.path(other).read_bytes()

    def kill(self, node: str, side: str) -> None:
        copier = self.copiers[node]
        assert isinstance(copier, ProcessCopier)
        found = copier._home(COPY, side).process()
        assert found is not None
        with found:
            found.signal(signal.SIGKILL)

    def use(self, node: str) -> None:
        """Have the disk open as QEMU has."""
        descriptor = os.open(self.path(node), os.O_RDWR)
        claim(descriptor, "disk", to_write=True)
        self.opened.append(descriptor)


Story = Callable[[Rig], Awaitable[None]]
Tell = Callable[[Story], None]


@pytest.fixture(params=["fake", "processes"])
def tell(request: pytest.FixtureRequest, tmp_path: Path) -> Tell:
    """Return what runs a story on two nodes that have a disk each."""

    def in_virtual_time(story: Story) -> None:
        async def scenario() -> None:
            await told(FakeRig(), story, COPY)

        simulate(scenario())

    def in_real_time(story: Story) -> None:
        rig = ProcessRig(tmp_path, TestCluster(tmp_path / "identities"))
        try:
            run(told(rig, story, COPY))
        finally:
            for descriptor in rig.opened:
                os.close(descriptor)

    return in_virtual_time if request.param == "fake" else in_real_time


async def begin(rig: Rig, *, rate: int = 0, compression: Compression = Compression.NONE) -> Offer:
    alpha, beta = rig.copiers["alpha"], rig.copiers["beta"]
    offer = await alpha.offer(COPY, rig.disks["alpha"], rig.peer("beta"), compression, rate)
    await beta.fetch(COPY, rig.disks["beta"], rig.peer("alpha"), rig.host("alpha"), offer)
    return offer


async def seen(rig: Rig, is_it: Callable[[Fetched], object]) -> Fetched:
    """Return how far it is as soon as that is as wanted."""
    while True:
        now = await rig.copiers["beta"].look(COPY)
        if is_it(now):
            return now
        await asyncio.sleep(0.05)


async def fetched(rig: Rig) -> Fetched:
    """Return how it was when it ended."""
    return await seen(rig, lambda now: now.has_ended)


async def part_of_it(rig: Rig) -> None:
    """Return when a part has arrived, and not all."""
    assert not (await seen(rig, lambda now: now.done)).has_ended


async def broken_off(rig: Rig) -> BrokenOff:
    with pytest.raises(BrokenOff) as caught:
        await fetched(rig)
    return caught.value


@pytest.mark.parametrize("compression", list(Compression))
def test_everything_arrives(tell: Tell, compression: Compression) -> None:
    async def story(rig: Rig) -> None:
        await begin(rig, compression=compression)
        assert (await fetched(rig)).done == SIZE * CHUNK
        assert rig.is_filled("beta")

    tell(story)


def test_what_was_on_the_target_is_overwritten_with_zeros_too(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        rig.fill("beta")
        await begin(rig)
        await fetched(rig)
        assert rig.is_filled("beta")

    tell(story)


def test_it_goes_on_while_noded_is_restarted(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        offer = await begin(rig, rate=SLOW)
        await part_of_it(rig)
        for node in ADDRESSES:
            rig.restart_noded(node)
        assert await begin(rig, rate=SLOW) == offer
        await fetched(rig)
        assert rig.is_filled("beta")

    tell(story)


@pytest.mark.parametrize(("node", "side"), [("alpha", "offer"), ("beta", "fetch")])
def test_it_goes_on_from_where_a_side_was_killed(tell: Tell, node: str, side: str) -> None:
    async def story(rig: Rig) -> None:
        await begin(rig, rate=SLOW)
        await part_of_it(rig)
        rig.kill(node, side)
        assert (await broken_off(rig)).detail["done"] > 0
        await begin(rig)
        await fetched(rig)
        assert rig.is_filled("beta")

    tell(story)


def test_one_that_has_ended_stays_ended(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        await begin(rig)
        await fetched(rig)
        rig.restart_noded("beta")
        await begin(rig)
        assert (await rig.copiers["beta"].look(COPY)).has_ended

    tell(story)


def test_a_wrong_secret_gets_nothing(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        alpha, beta = rig.copiers["alpha"], rig.copiers["beta"]
        offer = await alpha.offer(COPY, rig.disks["alpha"], rig.peer("beta"), Compression.NONE, 0)
        wrong = Offer(port=offer.port, secret="0" * len(offer.secret))
        await beta.fetch(COPY, rig.disks["beta"], rig.peer("alpha"), rig.host("alpha"), wrong)
        await broken_off(rig)
        assert not rig.is_filled("beta")

    tell(story)


def test_another_node_than_the_one_it_is_for_gets_nothing(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        alpha, beta = rig.copiers["alpha"], rig.copiers["beta"]
        for_gamma = Peer(name=NodeName("gamma"))
        offer = await alpha.offer(COPY, rig.disks["alpha"], for_gamma, Compression.NONE, 0)
        await beta.fetch(COPY, rig.disks["beta"], rig.peer("alpha"), rig.host("alpha"), offer)
        await broken_off(rig)
        assert not rig.is_filled("beta")

    tell(story)


@pytest.mark.parametrize("node", list(ADDRESSES))
def test_a_disk_that_a_guest_uses_is_not_copied(tell: Tell, node: str) -> None:
    async def story(rig: Rig) -> None:
        rig.use(node)
        with pytest.raises(NodeFailure, match="in use by a guest, a copy, or"):
            await begin(rig)

    tell(story)


def test_a_disk_is_not_deleted_while_it_is_copied(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        await begin(rig, rate=SLOW)
        for node in ADDRESSES:
            with pytest.raises(GntError, match=r"in use|attached"):
                await rig.storages[node].ensure_absent(rig.disks[node])

    tell(story)


def test_nothing_of_it_is_left_when_it_is_ended(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        await begin(rig, rate=SLOW)
        for node in ("beta", "alpha", "beta"):
            await rig.copiers[node].end(COPY)
        await broken_off(rig)
        for node in ADDRESSES:
            await rig.storages[node].detach(rig.disks[node])
            await rig.storages[node].ensure_absent(rig.disks[node])

    tell(story)
