"""Two ends of a mirrored disk, for tests of one process: they may be real, and on one node.

DRBD does not care what its peer calls a device, nor where it is. So both ends can be of one node,
if they have other names, numbers and addresses.
"""

import asyncio
import os
import socket
import subprocess
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from dataclasses import replace as copy
from pathlib import Path
from typing import Any, Protocol

import pytest
from msgspec.structs import replace

from common.errors import NodeFailure
from common.model.disk import DrbdBacking, LvmBacking
from common.names import DiskId, InstanceId, MiB, NodeId
from common.noderpc.disks import Access, DiskSpec, MirrorEnd
from common.noderpc.mirrors import CopyState, Link, MirrorReport
from noded.storage.drbd.devices import MirrorDevices
from noded.storage.drbd.driver import MirrorStorage
from noded.storage.drbd.fake import FakeDrbd
from noded.storage.drbd.fake_pairs import FakePairs
from noded.storage.drbd.linux import DIGEST, LinuxDrbd
from noded.storage.drbd.mirror import resource_of
from noded.storage.drbd.module import DrbdModule
from noded.storage.drbd.upkeep import MirrorUpkeep
from noded.storage.lvm.fake import FakeVolumes
from noded.storage.lvm.linux import LinuxVolumes
from noded.storage.lvm.volumes import NewVolume, Volume, Volumes
from tests.support.clock import simulate

GROUP = os.environ.get("GANTRY_TEST_GROUP", "")  # that tests may do anything with
WEB1 = InstanceId("11111111-0000-4000-8000-000000000001")
SECRET = "5ec7e75ec7e75ec7e75ec7e75ec7e75e"
SIZE = MiB(16)
POLL_S = 0.2
PATIENCE_S = 60.0


@dataclass
class Side:
    """One end: a node's storage, its module, and the disk as the node is told of it."""

    node: NodeId
    module: DrbdModule
    storage: MirrorStorage
    upkeep: MirrorUpkeep
    disk: DiskSpec

    @property
    def resource(self) -> str:
        return resource_of(self.disk.id)

    async def attach(self, access: Access) -> str:
        return await self.storage.attach(self.disk, access)

    async def detach(self) -> None:
        await self.storage.detach(self.disk)

    async def report(self) -> MirrorReport:
        (report,) = await self.upkeep.status((self.disk,))
        assert report is not None
        return report

    async def until(self, holds: Callable[[MirrorReport], bool], what: str) -> MirrorReport:
        """Wait until something is so, and return how the device is then."""
        loop = asyncio.get_running_loop()
        end = loop.time() + PATIENCE_S
        while not holds(report := await self.report()):
            assert loop.time() < end, f"Waited in vain for {what}: {report}"
            await asyncio.sleep(POLL_S)
        return report

    async def is_whole(self) -> MirrorReport:
        """Wait until both copies are good."""
        return await self.until(
            lambda r: r.own is r.peer is CopyState.UP_TO_DATE and r.link is Link.CONNECTED,
            "two good copies",
        )


def side_of(node: NodeId, volumes: Volumes, module: DrbdModule, disk: DiskSpec) -> Side:
    devices = MirrorDevices(volumes, module, lambda: node)
    return Side(node, module, MirrorStorage(devices), MirrorUpkeep(devices), disk)


class Pair(Protocol):
    """Both ends, and ways to change the world behind their backs."""

    one: Side
    other: Side
    proves: bool  # whether the kernel can have ends prove that they know a secret

    def run(self, story: Coroutine[Any, Any, None]) -> None:
        """Tell a story, and leave nothing behind."""

    async def write(self, side: Side) -> object:
        """Write something where a side is primary; return what tells it again."""

    async def has(self, side: Side, written: object) -> bool:
        """Tell whether it is what a side reads, that is primary."""

    async def hold_open(self, side: Side) -> Callable[[], Awaitable[None]]:
        """Use a side's device as a guest does; return what ends that."""

    async def cut(self) -> None:
        """Let nothing pass between the two."""

    async def heal(self) -> None: ...


def specs(
    group: str, addresses: tuple[str, str], minors: tuple[int, int], names: str = "aa"
) -> tuple[DiskSpec, DiskSpec]:
    """Return a disk as each of its two nodes is told of it; ``names`` end the UUIDs by which."""
    ends = tuple(
        MirrorEnd(node=NodeId(node), address=address, minor=minor)
        for node, address, minor in zip("ab", addresses, minors, strict=True)
    )
    made = []
    for letter in names:
        id = DiskId(f"dddddddd-0000-4000-8000-00000000000{letter}")
        backing = DrbdBacking(
            data=LvmBacking(group=group, name=f"{id}.data"),
            meta=LvmBacking(group=group, name=f"{id}.meta"),
            port=11042, minors={end.node: end.minor for end in ends}, secret=SECRET,
        )  # fmt: skip
        parameters = {"net-custom": "--ping-int=1 --timeout=9 --connect-int=1"}
        made.append(
            DiskSpec(
                id=id, instance=WEB1, size=SIZE, backing=backing, ends=ends, parameters=parameters
            )
        )
    return made[0], made[1]


class FakePair:
    """In memory, in virtual time."""

    def __init__(self) -> None:
        self.pairs = FakePairs()
        self.proves = True
        self._used: set[NodeId] = set()  # where a guest has it open
        one, other = specs("gantry", ("10.0.0.1", "10.0.0.2"), (0, 7))
        self.one, self.other = self._side(NodeId("a"), one), self._side(NodeId("b"), other)

    def _side(self, node: NodeId, disk: DiskSpec) -> Side:
        def uses(_: DiskId) -> bool:
            return node in self._used

        address = next(end.address for end in disk.ends if end.node == node)
        volumes = FakeVolumes("gantry")
        module = FakeDrbd(self.pairs, volumes, address, uses=uses)
        return side_of(node, volumes, module, disk)

    def run(self, story: Coroutine[Any, Any, None]) -> None:
        simulate(story)

    async def write(self, side: Side) -> object:
        await self._use(side)
        await asyncio.sleep(1)
        await side.module.look()
        written = self._written(side)
        self._used.discard(side.node)
        await side.module.look()
        return written

    async def has(self, side: Side, written: object) -> bool:
        await self._use(side)
        self._used.discard(side.node)
        return not self.pairs.lost

    def _written(self, side: Side) -> float:
        return asyncio.get_running_loop().time()

    async def _use(self, side: Side) -> None:
        side.storage.open(side.disk)
        self._used.add(side.node)
        await side.module.look()

    async def hold_open(self, side: Side) -> Callable[[], Awaitable[None]]:
        await self._use(side)

        async def end() -> None:
            self._used.discard(side.node)
            await side.module.look()

        return end

    def stop(self, side: Side) -> None:
        """Have no guest use a side, as after a power cut."""
        self._used.discard(side.node)

    async def cut(self) -> None:
        self.pairs.reaches = lambda _source, _target: False
        self.pairs.settle()

    async def heal(self) -> None:
        self.pairs.reaches = lambda _source, _target: True


class SmallVolumes(LinuxVolumes):
    """Volumes none of which is larger than the data of tests: zeros take their time.

    ``grown`` are those that have been made larger.
    """

    def __init__(self) -> None:
        super().__init__()
        self.grown: set[Volume] = set()

    async def ensure_active(self, wanted: Sequence[NewVolume]) -> tuple[str, ...]:
        return await super().ensure_active([copy(new, size=min(new.size, SIZE)) for new in wanted])

    async def grow(self, volume: Volume, size: MiB) -> None:
        self.grown.add(volume)
        await super().grow(volume, size)


class DrbdPair:
    """DRBD's module, both ends on this node. They talk over the loopback device.

    Volumes are kept from one story to the next, as making them takes longer than most stories; not
    those that have grown.
    """

    def __init__(self) -> None:
        if not GROUP or not Path("/proc/drbd").exists():
            pytest.skip("GANTRY_TEST_GROUP names no volume group for tests, or there is no DRBD")
        one, other = specs(GROUP, ("127.0.0.1", "127.0.0.2"), (100, 101), "ab")
        self._volumes = SmallVolumes()
        self.one, self.other = self._side(NodeId("a"), one), self._side(NodeId("b"), other)
        self.proves = has_hmac()
        self._opened: list[int] = []

    def _side(self, node: NodeId, disk: DiskSpec) -> Side:
        return side_of(node, self._volumes, LinuxDrbd(), disk)

    def run(self, story: Coroutine[Any, Any, None]) -> None:
        minors = {
            f"{GROUP}/{self.one.disk.id}.meta": 100,
            f"{GROUP}/{self.other.disk.id}.meta": 101,
        }
        run("lvchange", "--activate", "y", "--ignoreactivationskip", *minors)
        for meta, minor in minors.items():
            words = ("v08", f"/dev/{meta}", "flex-external", "create-md")
            run("drbdmeta", "--force", str(minor), *words)
        try:
            asyncio.run(story)
        finally:
            self._clean()

    @staticmethod
    def remove() -> None:
        """Leave no volume behind."""
        if GROUP:
            run("lvremove", "--yes", "--quiet", GROUP)

    def _clean(self) -> None:
        for descriptor in self._opened:
            os.close(descriptor)
        run("ip", "link", "set", "lo", "up")
        for name in (self.one.resource, self.other.resource, "precious"):
            run("drbdsetup", "down", name)
        disks = (self.one.disk.id, self.other.disk.id)
        aside = [f"{GROUP}/{disk}.{name}.aside" for disk in disks for name in ("data", "meta")]
        grown = [volume.name for volume in self._volumes.grown]
        run("lvremove", "--yes", "--quiet", *aside, *grown)  # those that are there

    async def write(self, side: Side) -> object:
        written = os.urandom(1 << 20)
        descriptor = side.storage.open(side.disk)
        try:
            os.pwrite(descriptor, written, 1 << 20)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return written

    async def has(self, side: Side, written: object) -> bool:
        descriptor = side.storage.open(side.disk)
        try:
            return os.pread(descriptor, 1 << 20, 1 << 20) == written
        finally:
            os.close(descriptor)

    async def hold_open(self, side: Side) -> Callable[[], Awaitable[None]]:
        self._opened.append(descriptor := side.storage.open(side.disk))

        async def end() -> None:
            os.close(descriptor)
            self._opened.remove(descriptor)

        return end

    async def cut(self) -> None:
        run("ip", "link", "set", "lo", "down")

    async def heal(self) -> None:
        run("ip", "link", "set", "lo", "up")


def has_hmac() -> bool:
    """Tell whether this kernel can make the digests that DRBD asks for."""
    try:
        with socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET) as algorithm:
            algorithm.bind(("hash", f"hmac({DIGEST})"))
    except OSError:
        return False
    return True


def run(*argv: str) -> None:
    """Run a program as an operator does, whether it succeeds or not."""
    subprocess.run(argv, capture_output=True, check=False)  # noqa: TID251 -- no loop is kept waiting


def only(side: Side) -> DiskSpec:
    """Return a side's disk without its other copy."""
    own = tuple(end for end in side.disk.ends if end.node == side.node)
    return replace(side.disk, ends=own)


async def whole(pair: Pair) -> None:
    """Make a disk, and begin it as zeros."""
    for side in (pair.one, pair.other):
        await side.storage.ensure_present(side.disk)
        await side.attach(Access.STANDBY)
    await pair.one.upkeep.begin(pair.one.disk, full=False)
    await pair.other.is_whole()


async def refusal(work: Awaitable[object]) -> str:
    """Return why something is refused."""
    try:
        await work
    except NodeFailure as error:
        return error.message
    raise AssertionError("It was not refused.")
