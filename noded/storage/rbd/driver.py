"""Disks that are images of a Ceph cluster, mapped by the kernel of the node that uses them."""

import errno
import re
import stat
from collections.abc import Sequence

from common.errors import InvalidRequest, NodeFailure
from common.model.backing import RbdBacking
from common.noderpc.disks import Access, DiskReport, DiskSpec
from common.noderpc.snapshots import SnapshotSpec
from noded.storage.attached import AttachedDevices
from noded.storage.block_device import IsDevice, check_unused, open_device, size_of
from noded.storage.interface import Storage
from noded.storage.rbd import commands
from noded.storage.rbd.parse import parse_device, parse_size
from noded.system.execute import CommandFailed, execute
from noded.system.threads import in_thread
from noded.system.turns import Turns

LOOK_S, CHANGE_S, REMOVE_S = 20.0, 40.0, 100.0

_IMAGE = re.compile(r"[0-9a-f-]{36}\.rbd")
_POOL = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]*")


class RbdStorage(Storage):
    """Runs rbd. A new image reads as zeros, and takes space as it is written to."""

    def __init__(self, attached: AttachedDevices, *, is_device: IsDevice = stat.S_ISBLK) -> None:
        self._attached = attached
        self._is_device = is_device
        self._turns = Turns()

    def check_place(self, disk: DiskSpec) -> None:
        _image_of(disk)

    async def ensure_present(self, disk: DiskSpec) -> None:
        image = _image_of(disk)
        async with self._turns.of(disk.id):
            if await self._find(disk) is None:
                await execute(*commands.create(image, disk.size), timeout_s=CHANGE_S)

    async def ensure_absent(self, disk: DiskSpec) -> None:
        image = _image_of(disk)
        async with self._turns.of(disk.id):
            if await self._find(disk) is None:
                return
            if device := await self._device(image):
                await in_thread(self._check_unused, device)
                raise NodeFailure(f"The disk {device} is attached; detach it first.", path=device)
            await execute(*commands.remove(image), timeout_s=REMOVE_S)

    async def grow(self, disk: DiskSpec) -> None:
        image = _image_of(disk)
        async with self._turns.of(disk.id):
            found = await self._find(disk)
            if found is None:
                raise NodeFailure(f"The disk {image.image} cannot be grown: it is not there.")
            if found.size < disk.size:
                await execute(*commands.grow(image, disk.size), timeout_s=CHANGE_S)

    async def find(self, disk: DiskSpec) -> DiskReport | None:
        _image_of(disk)
        return await self._find(disk)

    async def attach(self, disk: DiskSpec, access: Access) -> str:  # noqa: ARG002 -- Ceph has none
        image = _image_of(disk)
        async with self._turns.of(disk.id):
            if await self._find(disk) is None:
                raise NodeFailure(f"The disk {image.image} cannot be attached: it is not there.")
            device = await self._device(image)
            if not device:
                told = await execute(*commands.attach(image), timeout_s=CHANGE_S)
                device = told.stdout.decode(errors="replace").strip()
            await in_thread(self._look, device)
            self._attached.keep(disk.id, device)
            return device

    async def detach(self, disk: DiskSpec) -> None:
        image = _image_of(disk)
        async with self._turns.of(disk.id):
            # What a command that was cut off has mapped is not noted; the kernel knows.
            if device := await self._device(image):
                await in_thread(self._check_unused, device)
                await execute(*commands.detach(image, device), timeout_s=CHANGE_S)
            self._attached.forget(disk.id)

    async def snapshot_problem(self, disk: DiskSpec) -> str:  # noqa: ARG002 -- Ceph always can
        return ""

    async def take_snapshots(self, wanted: Sequence[SnapshotSpec]) -> None:
        for each in wanted:
            kept = _image_of(each.kept)
            async with self._turns.of(each.of.id):
                if await self._find(each.of) is None:
                    name = _image_of(each.of).image
                    raise NodeFailure(f"The disk {name} cannot be kept as it is: it is not there.")
                await execute(*commands.snapshot(kept), timeout_s=CHANGE_S)

    async def roll_back(self, snapshot: SnapshotSpec) -> None:
        kept, image = _image_of(snapshot.kept), _image_of(snapshot.of)
        async with self._turns.of(snapshot.of.id):
            if device := await self._device(image):
                raise NodeFailure(f"The disk {device} is attached; detach it first.", path=device)
            await execute(*commands.roll_back(kept), timeout_s=REMOVE_S)

    def open(self, disk: DiskSpec) -> int:
        _image_of(disk)
        if not (device := self._attached.find(disk.id)):
            raise NodeFailure(
                f"The disk {disk.id} cannot be opened: it is not attached.", disk=disk.id
            )
        return open_device(device, disk.mode, is_device=self._is_device)

    async def _find(self, disk: DiskSpec) -> DiskReport | None:
        try:
            told = await execute(*commands.info(_image_of(disk)), timeout_s=LOOK_S)
        except CommandFailed as error:
            if error.detail.get("status") == errno.ENOENT:
                return None
            raise
        return DiskReport(id=disk.id, instance=disk.instance, size=parse_size(told.stdout))

    async def _device(self, image: RbdBacking) -> str:
        told = await execute(*commands.attached(image), timeout_s=LOOK_S)
        return parse_device(told.stdout, image)

    def _look(self, device: str) -> None:
        size_of(device, is_device=self._is_device)

    def _check_unused(self, device: str) -> None:
        check_unused(device, is_device=self._is_device)


def _image_of(disk: DiskSpec) -> RbdBacking:
    """Return which image a disk is; one that is not its own is refused."""
    backing: object = disk.backing
    if not isinstance(backing, RbdBacking):
        raise InvalidRequest("This disk is no image of a Ceph cluster.", disk=disk.id)
    words = (backing.pool, backing.user or "none")
    name, _, snapshot = backing.image.partition("@")
    is_own = snapshot == disk.id if snapshot else name == f"{disk.id}.rbd"
    if not is_own or not _IMAGE.fullmatch(name) or not all(map(_POOL.fullmatch, words)):
        raise InvalidRequest(
            f"The image “{backing.pool}/{backing.image}” is not this disk's.", disk=disk.id
        )
    return backing
