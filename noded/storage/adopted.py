"""Disks that are block devices which were there before, and stay when the disk goes."""

import errno
import os
import stat
from pathlib import Path

from common.errors import InvalidRequest, NodeFailure
from common.model.backing import BlockBacking
from common.model.disk import Mode
from common.names import MiB
from common.noderpc.disks import Access, DiskReport, DiskSpec
from common.units import format_mib
from noded.storage.attached import AttachedDevices
from noded.storage.block_device import IsDevice, check_unused, open_device, size_of
from noded.storage.directories import names_below
from noded.storage.interface import Storage
from noded.system.threads import in_thread
from noded.system.turns import Turns

ROOT = "/dev/disk"  # where udev names devices by what does not change


class AdoptedStorage(Storage):
    """Gives guests whole devices, which nothing else of this node uses; makes and deletes none."""

    def __init__(
        self, attached: AttachedDevices, *, root: str = ROOT, is_device: IsDevice = stat.S_ISBLK
    ) -> None:
        """Take devices below ``root`` only; ``is_device`` says what is one."""
        self._attached = attached
        self._root = root
        self._is_device = is_device
        self._turns = Turns()

    def check_place(self, disk: DiskSpec) -> None:
        self._device(disk)

    async def ensure_present(self, disk: DiskSpec) -> None:
        """See that the device is there, of the size that was told, and that nobody uses it."""
        device = self._device(disk)
        found = await self.find(disk)
        if found is None:
            raise NodeFailure(f"There is no device {device} on this node.", path=device)
        if found.size != disk.size:
            raise InvalidRequest(
                f"The device {device} has {format_mib(found.size)}, not {format_mib(disk.size)}; "
                f"give size={found.size}M with it.",
                path=device,
            )
        if not self._attached.find(disk.id):
            await in_thread(self._check_free, disk.id, device)

    async def ensure_absent(self, disk: DiskSpec) -> None:
        """Leave the device and its data alone."""
        device = self._device(disk)
        if self._attached.find(disk.id):
            await in_thread(self._check_unused, device)
            raise NodeFailure(f"The disk {device} is attached; detach it first.", path=device)

    async def grow(self, disk: DiskSpec) -> None:
        device, found = self._device(disk), await self.find(disk)
        if found is None:
            raise NodeFailure(f"The disk {device} cannot be grown: it is not there.", path=device)
        if found.size < disk.size:
            raise NodeFailure(
                f"The device {device} has {format_mib(found.size)}. It is grown where it comes "
                "from, and not by Gantry.",
                path=device,
            )

    async def find(self, disk: DiskSpec) -> DiskReport | None:
        device = self._device(disk)
        if not await in_thread(Path(device).exists):
            return None
        size = await in_thread(self._size, device)
        return DiskReport(id=disk.id, instance=disk.instance, size=size)

    async def attach(self, disk: DiskSpec, access: Access) -> str:  # noqa: ARG002 -- it is attached
        device = self._device(disk)
        async with self._turns.of("all"):  # two disks must not get the same device
            if await self.find(disk) is None:
                raise NodeFailure(
                    f"The disk {device} cannot be attached: it is not there.", path=device
                )
            if not self._attached.find(disk.id):
                await in_thread(self._check_free, disk.id, device)
                self._attached.keep(disk.id, device)
            return device

    async def detach(self, disk: DiskSpec) -> None:
        device = self._device(disk)
        if self._attached.find(disk.id):
            await in_thread(self._check_unused, device)
            self._attached.forget(disk.id)

    def open(self, disk: DiskSpec) -> int:
        device = self._device(disk)
        if not self._attached.find(disk.id):
            raise NodeFailure(f"The disk {device} cannot be opened: it is not attached.")
        return open_device(device, disk.mode, is_device=self._is_device)

    def _device(self, disk: DiskSpec) -> str:
        """Return the path of a disk's device, which may be one of those that udev names only."""
        backing: object = disk.backing
        if not isinstance(backing, BlockBacking):
            raise InvalidRequest("This disk is no adopted device.", disk=disk.id)
        if len(names_below(self._root, backing.device)) != 2:
            raise InvalidRequest(
                f"“{backing.device}” is no path below {self._root}, as /dev/disk/by-id/NAME is.",
                path=backing.device,
            )
        return backing.device

    def _size(self, device: str) -> MiB:
        return size_of(device, is_device=self._is_device)

    def _check_unused(self, device: str) -> None:
        check_unused(device, is_device=self._is_device)

    def _check_free(self, disk: str, device: str) -> None:
        """Refuse what is mounted, or below another device, or attached for another disk."""
        attached = self._attached.every().items()
        others = [Path(there) for other, there in attached if other != disk]
        if any(each.exists() and each.samefile(device) for each in others):
            raise NodeFailure(f"The device {device} is attached for another disk.", path=device)
        check_exclusive(device, is_device=self._is_device)


def check_exclusive(device: str, *, is_device: IsDevice = stat.S_ISBLK) -> None:
    """Refuse a device that the kernel uses: mounted, swapped to, or a part of another device.

    Raises:
        NodeFailure: names it.
    """
    descriptor = open_device(device, Mode.READ_ONLY, is_device=is_device)
    try:
        os.close(os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise NodeFailure(f"{device} cannot be opened: {error.strerror}.") from error
        raise NodeFailure(
            f"The device {device} is in use on this node: mounted, or a part of another device.",
            path=device,
        ) from error
    finally:
        os.close(descriptor)
