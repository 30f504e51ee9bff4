"""What only mirrored disks can be asked: how they are, and what keeps their copies equal."""

from common.errors import NodeFailure
from common.names import DiskId
from common.noderpc.disks import DiskSpec
from common.noderpc.mirrors import CopyState, Link, MirrorDevice, MirrorReport
from noded.storage.drbd.decide import check_forgotten, is_split
from noded.storage.drbd.devices import CONNECT_S, MirrorDevices
from noded.storage.drbd.mirror import Mirror, disk_of, resource_of
from noded.storage.drbd.module import Device, ModuleState


class MirrorUpkeep:
    """See ``common.noderpc.mirrors.Mirrors``; one disk at a time."""

    def __init__(self, devices: MirrorDevices) -> None:
        self._devices = devices
        self._volumes = devices.volumes
        self._module = devices.module

    async def module(self) -> ModuleState:
        """Return how the module of this node is, and why no disk can be mirrored, if none can."""
        return await self._module.state()

    async def status(self, disks: tuple[DiskSpec, ...]) -> tuple[MirrorReport | None, ...]:
        """Return how each of some disks is, in their order; None where it is not set up."""
        devices = {device.resource: device for device in await self._module.look()}
        mirrors = map(self._devices.read, disks)
        return tuple(self._report(mirror, devices.get(mirror.resource)) for mirror in mirrors)

    async def devices(self) -> tuple[MirrorDevice, ...]:
        """Return all devices that there are, by their numbers, ours or not."""
        every = sorted(await self._module.look(), key=lambda device: device.minor)
        return tuple(
            MirrorDevice(resource=each.resource, minor=each.minor, disk=disk_of(each.resource))
            for each in every
        )

    async def take_away(self, disk: DiskId) -> None:
        resource = resource_of(disk)
        for device in await self._module.look():
            if device.resource == resource:
                check_forgotten(device)
                await self._module.remove(resource)

    async def begin(self, disk: DiskSpec, *, full: bool) -> None:
        mirror = self._devices.read(disk)
        report = (await self._devices.wait_for_peer(mirror, CONNECT_S)).report
        if CopyState.UP_TO_DATE in (report.own, report.peer):
            return
        if mirror.connection is not None:
            _check_connected(report, mirror)
            if not full:
                await self._module.declare_equal(mirror.minor)
                return
        await self._module.promote(mirror.resource, mirror.minor, force=True)
        await self._devices.demote(mirror)

    async def declare_good(self, disk: DiskSpec) -> None:
        mirror = self._devices.read(disk)
        report = (await self._devices.there(mirror)).report
        told = (report.own, report.peer) if report.link is Link.CONNECTED else (report.own,)
        if CopyState.UP_TO_DATE in told:
            return  # there is nothing to declare: one that is good can be asked
        if report.own in (CopyState.NONE, CopyState.INCONSISTENT):
            raise NodeFailure(f"There is no copy of {mirror.name} on this node that is of any use.")
        await self._module.promote(mirror.resource, mirror.minor, force=True)
        await self._devices.demote(mirror)

    async def give_up(self, disk: DiskSpec) -> None:
        mirror = self._devices.read(disk)
        if await self._devices.find(mirror) is not None:
            raise NodeFailure(f"The copy of {mirror.name} stays: it is attached; detach it first.")
        # Metadata that is new says of whatever data is there that it is no copy.
        await self._volumes.ensure_absent([mirror.meta])
        _, meta = await self._volumes.ensure_active(mirror.new_volumes)
        await self._module.ensure_meta(mirror.minor, meta)
        await self._volumes.deactivate(mirror.volumes)

    async def connect(self, disk: DiskSpec, *, discard: bool) -> None:
        mirror = self._devices.read(disk)
        device = await self._devices.there(mirror)
        if discard and device.report.primary:
            raise NodeFailure(
                f"What was written to {mirror.name} on this node cannot be given up while it is "
                "in use here."
            )
        if discard and device.connection is not None:
            await self._module.disconnect(device.connection)
            device = await self._devices.there(mirror)
        await self._devices.link(mirror, device, discard=discard, allow_two=device.allows_two)

    async def set_aside(self, disk: DiskSpec) -> None:
        mirror = self._devices.read(disk)
        data, meta, *present = await self._volumes.find([*mirror.set_aside, *mirror.volumes])
        if data is not None:
            return
        if meta is not None:
            await self._volumes.rename([(mirror.data, mirror.set_aside[0])])
            return
        device = await self._devices.there(mirror)
        report = device.report
        if report.link is not Link.CONNECTED or report.peer is not CopyState.UP_TO_DATE:
            raise NodeFailure(
                f"The volumes of {mirror.name} stay: the other node is not known to have a good "
                "copy."
            )
        if device.volumes is not None:
            await self._module.detach(mirror.minor)
        if None in present:
            # One has gone with what it was on, and the other one by itself is of no use.
            await self._volumes.ensure_absent(mirror.volumes)
            return
        # The metadata goes first, and comes back last: there must be none beside other data, which
        # it would call a good copy.
        pairs = zip(mirror.volumes, mirror.set_aside, strict=True)
        await self._volumes.rename([*pairs][::-1])

    async def take_back(self, disk: DiskSpec) -> None:
        mirror = self._devices.read(disk)
        aside = await self._volumes.find(mirror.set_aside)
        if not any(aside):
            return
        device = await self._devices.find(mirror)
        if device is not None and device.volumes is not None:
            await self._module.detach(mirror.minor)
        pairs = [*zip(mirror.volumes, mirror.set_aside, aside, strict=True)]
        await self._volumes.ensure_absent([volume for volume, _, there in pairs if there])
        await self._volumes.rename([(name, volume) for volume, name, _ in pairs])

    async def drop_aside(self, disk: DiskSpec) -> None:
        await self._volumes.ensure_absent(self._devices.read(disk).set_aside)

    def _report(self, mirror: Mirror, device: Device | None) -> MirrorReport | None:
        if device is None or device.minor != mirror.minor:
            return None
        return device.report if mirror.connection is None else is_split(device.report)


def _check_connected(report: MirrorReport, mirror: Mirror) -> None:
    if report.link is not Link.CONNECTED:
        raise NodeFailure(f"The disk {mirror.name} is not connected to its other copy.")
