"""A mirrored disk both ends of which only pretend, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from common.names import DiskId, NodeId
from common.noderpc.disks import DiskSpec
from noded.storage.drbd.fake import FakeDrbd
from noded.storage.drbd.fake_pairs import FakePairs
from noded.storage.drbd.module import ModuleState
from noded.storage.lvm.fake import FakeVolumes
from tests.support.clock import simulate
from tests.support.pairs import Side, side_of, specs


class FakePair:
    """In memory, in virtual time."""

    version = "8.4.11"

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
        module.module = ModuleState(version=self.version)
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


class FakePairOfNine(FakePair):
    """The same, with DRBD 9."""

    version = "9.2.16"
