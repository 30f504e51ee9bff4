"""All that holds disks on a node: a driver for each kind of backing, and of pool."""

from collections.abc import Mapping
from dataclasses import dataclass

from common.errors import NodeFailure
from common.model.backing import Backing
from common.model.pool import Pool
from common.model.pool_kind import PoolKind
from common.noderpc.disks import DiskSpec, VolumeListing
from common.noderpc.facts import StorageReport
from noded.storage.drbd.module import ModuleState
from noded.storage.drbd.upkeep import MirrorUpkeep
from noded.storage.interface import PoolDriver, Storage


@dataclass(frozen=True, slots=True)
class Storages:
    """The drivers of one node; who has several of them keeps their disks apart by backing."""

    by_backing: Mapping[type[Backing], Storage]
    by_pool: Mapping[PoolKind, PoolDriver]
    mirrors: MirrorUpkeep | None = None  # for what only mirrored disks can be asked

    def of(self, disk: DiskSpec) -> Storage:
        """Return the driver that looks after a disk.

        Raises:
            NodeFailure: this node has none for such disks.
        """
        if type(disk.backing) not in self.by_backing:
            raise NodeFailure("This node cannot keep such disks.", disk=disk.id)
        return self.by_backing[type(disk.backing)]

    async def mirroring(self) -> ModuleState:
        """Return what this node mirrors disks with, and why it cannot, if so."""
        if self.mirrors is None:
            return ModuleState(problem="It has no driver for that.")
        return await self.mirrors.module()

    def open(self, disk: DiskSpec) -> int:
        """Open a guest's disk; see ``Storage.open``. Blocks."""
        return self.of(disk).open(disk)

    async def inventory(self, pool: Pool) -> tuple[str, ...]:
        """Return what is in a pool; see ``PoolDriver.inventory``."""
        return await self._driver(pool).inventory(pool)

    async def volumes(self, pool: Pool) -> tuple[VolumeListing, ...]:
        """Return the volumes of a pool; see ``PoolDriver.volumes``."""
        return await self._driver(pool).volumes(pool)

    async def space(self, pool: Pool) -> StorageReport:
        """Return how much space a pool has; see ``PoolDriver.space``."""
        return await self._driver(pool).space(pool)

    def _driver(self, pool: Pool) -> PoolDriver:
        if pool.kind not in self.by_pool:
            raise NodeFailure(f"This node cannot keep disks in {pool}.", pool=pool.name)
        return self.by_pool[pool.kind]
