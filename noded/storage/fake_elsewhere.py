"""Disks that are kept elsewhere, and exist in memory only."""

from collections.abc import Callable
from functools import cached_property

from msgspec.structs import replace

from common.errors import InvalidRequest, NodeFailure
from common.model.backing import BlockBacking, Elsewhere
from common.names import DiskId
from common.noderpc.disks import Access, DiskReport, DiskSpec
from common.units import format_mib
from noded.storage.directories import Directories
from noded.storage.fake import FakeFiles, FakeStorage


class FakeElsewhere(FakeStorage):
    """Disks that no node keeps, by what they are called where they are."""

    def __init__(
        self, volumes: FakeFiles, *, uses: Callable[[DiskId], bool] = lambda _: False
    ) -> None:
        """Make one machine's view of what several nodes reach."""
        super().__init__(Directories, local=FakeFiles(), shared=volumes, uses=uses)
        self.clones = True

    def check_place(self, disk: DiskSpec) -> None:
        self._name(disk)

    def _name(self, disk: DiskSpec) -> str:
        backing: object = disk.backing
        if not isinstance(backing, Elsewhere):
            raise InvalidRequest("This disk is kept by no provider.", disk=disk.id)
        return backing.where

    def _locate(self, disk: DiskSpec) -> FakeFiles:  # noqa: ARG002 -- there is one place only
        return self.shared

    def _unreachable(self, disk: DiskSpec) -> NodeFailure:
        return NodeFailure(f"{self._name(disk)} is out of reach of this node.")


class FakeAdopted(FakeElsewhere):
    """Devices that were there before: scenarios put them among ``volumes``, by their paths."""

    async def ensure_present(self, disk: DiskSpec) -> None:
        there = self.shared.disks.get(self._name(disk))
        if there is None:
            raise NodeFailure(f"There is no device {self._name(disk)} on this node.")
        if there.size != disk.size:
            raise InvalidRequest(
                f"The device {self._name(disk)} has {format_mib(there.size)}, not "
                f"{format_mib(disk.size)}; give size={there.size}M with it."
            )
        self._check_free(disk)

    async def ensure_absent(self, disk: DiskSpec) -> None:
        if disk.id in self.attached:
            self._check_unused(disk)
            raise NodeFailure(f"The disk {self._name(disk)} is attached; detach it first.")

    async def grow(self, disk: DiskSpec) -> None:
        found = await self.find(disk)
        if found is None:
            raise NodeFailure(f"The disk {self._name(disk)} cannot be grown: it is not there.")
        if found.size < disk.size:
            raise NodeFailure(f"The device {self._name(disk)} is grown where it comes from.")

    async def find(self, disk: DiskSpec) -> DiskReport | None:
        there = self.shared.disks.get(self._name(disk))
        return replace(there, id=disk.id, instance=disk.instance) if there else None

    async def attach(self, disk: DiskSpec, access: Access) -> str:
        if disk.id not in self.attached:
            self._check_free(disk)
        path = await super().attach(disk, access)
        self._devices[disk.id] = path
        return path

    def _check_free(self, disk: DiskSpec) -> None:
        for other in self.attached:
            if other != disk.id and self._devices[other] == self._name(disk):
                raise NodeFailure(f"The device {self._name(disk)} is attached for another disk.")

    def _name(self, disk: DiskSpec) -> str:
        backing: object = disk.backing
        if not isinstance(backing, BlockBacking):
            raise InvalidRequest("This disk is no adopted device.", disk=disk.id)
        return backing.device

    @cached_property
    def _devices(self) -> dict[DiskId, str]:
        return {}
