"""Two ends of a mirrored disk, for tests of one process, and what a test asks of them."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from msgspec.structs import replace

from common.errors import NodeFailure
from common.model.backing import DrbdBacking, LvmBacking
from common.names import DiskId, InstanceId, MiB, NodeId
from common.noderpc.disks import Access, DiskSpec, MirrorEnd
from common.noderpc.mirrors import CopyState, Link, MirrorReport
from noded.storage.drbd.devices import MirrorDevices
from noded.storage.drbd.driver import MirrorStorage
from noded.storage.drbd.mirror import resource_of
from noded.storage.drbd.module import DrbdModule
from noded.storage.drbd.upkeep import MirrorUpkeep
from noded.storage.lvm.volumes import Volumes

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


async def begun(pair: Pair) -> tuple[Side, Side]:
    """Make a disk that is primary on one side, and follows on the other."""
    await whole(pair)
    await pair.one.attach(Access.SOLE)
    return pair.one, pair.other


async def refusal(work: Awaitable[object]) -> str:
    """Return why something is refused."""
    try:
        await work
    except NodeFailure as error:
        return error.message
    raise AssertionError("It was not refused.")
