"""Disks that DRBD mirrors between two nodes: attached, handed over, taken away.

A device is taken for a disk's if it has the disk's name, its number and its volumes, which are ours
by their tags; the other end has to know the disk's secret. Nothing else is written to or promoted.
"""

import asyncio
from collections.abc import Callable

from common.errors import NodeFailure
from common.model.disk import Mode
from common.names import NodeId
from common.noderpc.disks import Access, DiskReport, DiskSpec
from common.noderpc.mirrors import Copying, CopyState, Link, MirrorReport
from noded.storage.drbd.decide import check_promotion, check_removable, is_split, serves
from noded.storage.drbd.mirror import Mirror, read_mirror
from noded.storage.drbd.module import Device, DrbdModule, InUse
from noded.storage.interface import Storage
from noded.storage.lvm import names
from noded.storage.lvm.volumes import Volumes

CONNECT_S = 10.0  # until two nodes that both look for each other are taken for parted
POLL_S = 0.1


class MirrorStorage(Storage):
    """The disks of this node that are mirrored."""

    def __init__(self, volumes: Volumes, module: DrbdModule, me: Callable[[], NodeId]) -> None:
        """Keep disks on ``volumes``; ``me`` says which of a disk's ends this node is."""
        self._volumes = volumes
        self._module = module
        self._me = me
        self._parted: set[str] = set()  # resources that were told to be disconnected

    # As any disk

    def check_place(self, disk: DiskSpec) -> None:
        names.check(*self.read(disk).volumes)

    async def ensure_present(self, disk: DiskSpec) -> None:
        mirror = self.read(disk)
        await self._volumes.ensure_present(mirror.new_volumes)
        (meta,) = await self._volumes.activate([mirror.meta])
        await self._module.ensure_meta(meta)

    async def ensure_absent(self, disk: DiskSpec) -> None:
        mirror = self.read(disk)
        if await self._find(mirror) is not None:
            raise NodeFailure(f"The disk {mirror.name} is attached; detach it first.")
        await self._volumes.ensure_absent([*mirror.volumes, *mirror.set_aside])

    async def find(self, disk: DiskSpec) -> DiskReport | None:
        data, meta = await self._volumes.find(self.read(disk).volumes)
        if data is None or meta is None:
            return None
        return DiskReport(id=disk.id, instance=data.instance, size=data.size)

    async def grow(self, disk: DiskSpec) -> None:
        mirror = self.read(disk)
        await self._volumes.grow(mirror.data, disk.size)
        device = await self._find(mirror)
        if device is not None and device.volumes is not None and device.size < disk.size:
            report = device.report
            is_last = report.primary or not report.peer_primary
            if is_last:
                await self._module.resize(mirror.minor, disk.size)

    async def attach(self, disk: DiskSpec, access: Access) -> str:
        mirror = self.read(disk)
        device = await self._set_up(mirror)
        is_primary = device is not None and device.report.primary
        if is_primary and access is Access.STANDBY:
            await self._demote(mirror)
        await self._link(mirror, device, allow_two=access is Access.SHARED)
        if not is_primary and access is not Access.STANDBY:
            await self._promote(mirror, access)
        return f"/dev/drbd{mirror.minor}"

    async def detach(self, disk: DiskSpec) -> None:
        mirror = self.read(disk)
        device = await self._find(mirror)
        if device is not None:
            if device.report.primary:
                await self._demote(mirror)
            await self._module.remove(mirror.resource)
            self._parted.discard(mirror.resource)
        await self._volumes.deactivate(mirror.volumes)

    def open(self, disk: DiskSpec) -> int:
        mirror = self.read(disk)
        read_only = disk.mode is Mode.READ_ONLY
        return self._module.open(mirror.resource, mirror.minor, read_only=read_only)

    # As only mirrors

    async def status(self, disks: tuple[DiskSpec, ...]) -> tuple[MirrorReport | None, ...]:
        """Return how each of some disks is, in their order; None where it is not set up."""
        devices = {device.resource: device for device in await self._module.look()}
        mirrors = map(self.read, disks)
        return tuple(self._report(mirror, devices.get(mirror.resource)) for mirror in mirrors)

    async def begin(self, disk: DiskSpec, *, full: bool) -> None:
        """See ``Mirrors.begin``."""
        mirror = self.read(disk)
        report = (await self._wait_for_peer(mirror, CONNECT_S)).report
        if CopyState.UP_TO_DATE in (report.own, report.peer):
            return
        if mirror.connection is not None:
            _check_connected(report, mirror)
            if not full:
                await self._module.declare_equal(mirror.minor)
                return
        await self._module.promote(mirror.minor, force=True)
        await self._demote(mirror)

    async def declare_good(self, disk: DiskSpec) -> None:
        """See ``Mirrors.declare_good``."""
        mirror = self.read(disk)
        report = (await self._there(mirror)).report
        if report.link is Link.CONNECTED:
            raise NodeFailure(
                f"The disk {mirror.name} is connected to its other copy, which can be asked."
            )
        if report.own in (CopyState.NONE, CopyState.INCONSISTENT):
            raise NodeFailure(f"There is no copy of {mirror.name} on this node that is of any use.")
        if report.own is not CopyState.UP_TO_DATE:
            await self._module.promote(mirror.minor, force=True)
            await self._demote(mirror)

    async def disconnect(self, disk: DiskSpec) -> None:
        """See ``Mirrors.disconnect``."""
        mirror = self.read(disk)
        device = await self._find(mirror)
        if device is not None and device.connection is not None:
            await self._module.disconnect(device.connection)
        self._parted.add(mirror.resource)

    async def connect(self, disk: DiskSpec, *, discard: bool) -> None:
        """See ``Mirrors.connect``."""
        mirror = self.read(disk)
        device = await self._there(mirror)
        if discard and device.report.primary:
            raise NodeFailure(
                f"What was written to {mirror.name} on this node cannot be given up while it is "
                "in use here."
            )
        if discard and device.connection is not None:
            await self._module.disconnect(device.connection)
            device = await self._there(mirror)
        await self._link(mirror, device, discard=discard, allow_two=device.allows_two)

    async def pause(self, disk: DiskSpec) -> None:
        """See ``Mirrors.pause``."""
        mirror = self.read(disk)
        device = await self._there(mirror)
        if device.report.copying is not Copying.NOTHING and not device.report.paused:
            await self._module.pause(mirror.minor)

    async def resume(self, disk: DiskSpec) -> None:
        """See ``Mirrors.resume``."""
        mirror = self.read(disk)
        if (await self._there(mirror)).report.paused:
            await self._module.resume(mirror.minor)

    async def limit(self, disk: DiskSpec, rate_kib: int) -> None:
        """See ``Mirrors.limit``."""
        mirror = self.read(disk)
        await self._there(mirror)
        await self._module.limit(mirror.minor, rate_kib, mirror.parameters)

    async def begin_verify(self, disk: DiskSpec) -> None:
        """See ``Mirrors.begin_verify``."""
        mirror = self.read(disk)
        report = (await self._there(mirror)).report
        _check_connected(report, mirror)
        if report.copying is Copying.NOTHING:
            await self._module.verify(mirror.minor)

    async def set_aside(self, disk: DiskSpec) -> None:
        """See ``Mirrors.set_aside``."""
        mirror = self.read(disk)
        if any(await self._volumes.find(mirror.set_aside)):
            await self._rename(mirror, back=False)  # the rest of them
            return
        device = await self._there(mirror)
        report = device.report
        if report.link is not Link.CONNECTED or report.peer is not CopyState.UP_TO_DATE:
            raise NodeFailure(
                f"The volumes of {mirror.name} stay: the other node is not known to have a good "
                "copy."
            )
        if device.volumes is not None:
            await self._module.detach(mirror.minor)
        await self._rename(mirror, back=False)

    async def take_back(self, disk: DiskSpec) -> None:
        """See ``Mirrors.take_back``."""
        mirror = self.read(disk)
        if not any(await self._volumes.find(mirror.set_aside)):
            return
        device = await self._find(mirror)
        if device is not None and device.volumes is not None:
            await self._module.detach(mirror.minor)
        await self._rename(mirror, back=True)

    async def drop_aside(self, disk: DiskSpec) -> None:
        """See ``Mirrors.drop_aside``."""
        await self._volumes.ensure_absent(self.read(disk).set_aside)

    # The parts of it

    def read(self, disk: DiskSpec) -> Mirror:
        """Return this node's end of a disk; see ``read_mirror``."""
        return read_mirror(disk, self._me())

    async def _find(self, mirror: Mirror) -> Device | None:
        every = await self._module.look()
        return next((device for device in every if device.resource == mirror.resource), None)

    async def _there(self, mirror: Mirror) -> Device:
        device = await self._find(mirror)
        if device is None:
            raise NodeFailure(f"The disk {mirror.name} is not attached on this node.")
        return device

    async def _set_up(self, mirror: Mirror) -> Device | None:
        """Have the device with its volumes; return it as it was found, None if it was made now."""
        found = None
        for device in await self._module.look():
            if device.resource == mirror.resource and serves(device, mirror):
                found = device
            elif device.resource == mirror.resource or device.minor == mirror.minor:
                check_removable(device, mirror)
                await self._module.remove(device.resource)
        if found is not None and found.volumes is not None:
            return found
        data, meta = await self._volumes.activate(mirror.volumes)
        if found is None:
            await self._module.create(mirror.resource, mirror.minor)
        await self._module.attach(mirror.minor, data, meta, mirror.disk.size, mirror.parameters)
        return found

    async def _link(
        self, mirror: Mirror, device: Device | None, *, allow_two: bool, discard: bool = False
    ) -> None:
        """Have the device look for its peer, and for nobody else."""
        wanted, there = mirror.connection, device.connection if device else None
        if there is not None and there != wanted:
            await self._module.disconnect(there)
            there = None
        if wanted is None:
            return
        if there is None:
            await self._module.connect(wanted, mirror.secret, mirror.parameters, discard=discard)
        self._parted.discard(mirror.resource)
        if allow_two != (there is not None and device is not None and device.allows_two):
            await self._module.allow_two(wanted, allowed=allow_two)

    async def _promote(self, mirror: Mirror, access: Access) -> None:
        is_alone = access is Access.ALONE or mirror.connection is None
        device = await self._wait_for_peer(mirror, 0 if is_alone else CONNECT_S)
        forced = check_promotion(device.report, mirror.name, alone=is_alone)
        await self._module.promote(mirror.minor, force=forced)

    async def _wait_for_peer(self, mirror: Mirror, seconds: float) -> Device:
        """Return the device once it is connected, or after a while."""
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        while True:
            device = await self._there(mirror)
            if device.report.link is not Link.CONNECTING or clock() >= end:
                return device
            await asyncio.sleep(POLL_S)

    async def _demote(self, mirror: Mirror) -> None:
        try:
            await self._module.demote(mirror.minor)
        except InUse as error:
            raise InUse(
                f"The disk {mirror.name} is in use by a running guest; stop it first."
            ) from error

    async def _rename(self, mirror: Mirror, *, back: bool) -> None:
        for volume, aside in zip(mirror.volumes, mirror.set_aside, strict=True):
            old, new = (aside, volume) if back else (volume, aside)
            if back and any(await self._volumes.find([old])):
                await self._volumes.ensure_absent([new])
            await self._volumes.rename(old, new)

    def _report(self, mirror: Mirror, device: Device | None) -> MirrorReport | None:
        if device is None or device.minor != mirror.minor:
            return None
        told = mirror.resource in self._parted or mirror.connection is None
        return device.report if told else is_split(device.report)


def _check_connected(report: MirrorReport, mirror: Mirror) -> None:
    if report.link is not Link.CONNECTED:
        raise NodeFailure(f"The disk {mirror.name} is not connected to its other copy.")
