"""Devices of this node's mirrored disks: found, set up, connected, and made primary.

A device is taken for a disk's if it has the disk's name, its number and its volumes, which are ours
by their tags; the other end has to know the disk's secret. Nothing else is written to or promoted.
"""

import asyncio
from collections.abc import Callable, Sequence

from common.errors import NodeFailure
from common.names import NodeId
from common.noderpc.disks import Access, DiskSpec
from common.noderpc.mirrors import Link
from noded.storage.drbd.decide import check_promotion, check_removable, serves
from noded.storage.drbd.mirror import Mirror, read_mirror
from noded.storage.drbd.module import Device, DrbdModule, InUse
from noded.storage.lvm.volumes import Volumes

# Until two nodes that both look for each other are taken for parted. DRBD tries every ten seconds.
CONNECT_S = 15.0
POLL_S = 0.1


class MirrorDevices:
    """The devices of this node that are ours."""

    def __init__(self, volumes: Volumes, module: DrbdModule, me: Callable[[], NodeId]) -> None:
        """Have devices on ``volumes``; ``me`` says which of a disk's ends this node is."""
        self.volumes = volumes
        self.module = module
        self._me = me

    def read(self, disk: DiskSpec) -> Mirror:
        """Return this node's end of a disk; see ``read_mirror``."""
        return read_mirror(disk, self._me())

    async def find(self, mirror: Mirror) -> Device | None:
        every = await self.module.look()
        return next((device for device in every if device.resource == mirror.resource), None)

    async def there(self, mirror: Mirror) -> Device:
        device = await self.find(mirror)
        if device is None:
            raise NodeFailure(f"The disk {mirror.name} is not attached on this node.")
        return device

    async def activate(self, mirrors: Sequence[Mirror]) -> None:
        """Have the volumes of all that are to be set up, which asks LVM as much as for one."""
        every = await self.module.look()
        complete = {device.resource for device in every if device.volumes is not None}
        missing = [mirror for mirror in mirrors if mirror.resource not in complete]
        if missing:
            await self.volumes.activate([each for mirror in missing for each in mirror.volumes])

    async def set_up(self, mirror: Mirror) -> Device | None:
        """Have the device with its volumes; return it as it was found, None if it was made now."""
        found = None
        for device in await self.module.look():
            if device.resource == mirror.resource and serves(device, mirror):
                found = device
            elif device.resource == mirror.resource or device.minor == mirror.minor:
                check_removable(device, mirror)
                await self.module.remove(device.resource)
        if found is not None and found.volumes is not None:
            return found
        data, meta = await self.volumes.activate(mirror.volumes)
        if found is None:
            await self.module.create(mirror.resource, mirror.minor, mirror.number)
        await self.module.attach(mirror.minor, data, meta, mirror.disk.size, mirror.parameters)
        return found

    async def link(
        self, mirror: Mirror, device: Device | None, *, allow_two: bool, discard: bool = False
    ) -> None:
        """Have the device look for its peer, and for nobody else."""
        wanted, there = mirror.connection, device.connection if device else None
        changes = device is not None and device.allows_two != allow_two
        # Options that change free what 8.4 checks a peer's proof with, which it may just be doing.
        may_be_checking = device is not None and device.report.link is Link.CONNECTING
        if there is not None and (there != wanted or (changes and may_be_checking)):
            await self.module.disconnect(there)
            there = None
        if wanted is None:
            return
        if there is None:
            # What is allowed is told with it: the other end may be there before another command.
            await self.module.connect(
                wanted, mirror.secret, mirror.parameters, discard=discard, allow_two=allow_two
            )
        elif changes:
            await self.module.allow_two(wanted, allowed=allow_two)

    async def promote(self, mirror: Mirror, access: Access) -> None:
        is_alone = access is Access.ALONE or mirror.connection is None
        device = await self.wait_for_peer(mirror, 0 if is_alone else CONNECT_S)
        forced = check_promotion(device.report, mirror.name, alone=is_alone)
        try:
            await self.module.promote(mirror.resource, mirror.minor, force=forced)
        except NodeFailure:
            # A peer that has lost its power is missed only after a while, or by being asked this.
            report = (await self.there(mirror)).report
            if forced or report.link is Link.CONNECTED:
                raise
            forced = check_promotion(report, mirror.name, alone=is_alone)
            await self.module.promote(mirror.resource, mirror.minor, force=forced)

    async def wait_for_peer(self, mirror: Mirror, seconds: float) -> Device:
        """Return the device once it is connected, or after a while."""
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        while True:
            device = await self.there(mirror)
            if device.report.link is not Link.CONNECTING or clock() >= end:
                return device
            await asyncio.sleep(POLL_S)

    async def demote(self, mirror: Mirror) -> None:
        try:
            await self.module.demote(mirror.resource, mirror.minor)
        except InUse as error:
            raise InUse(
                f"The disk {mirror.name} is in use by a running guest; stop it first."
            ) from error
