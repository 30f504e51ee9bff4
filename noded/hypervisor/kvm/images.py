"""Changing what is inside of an image, while a guest has that open."""

from pathlib import Path
from typing import Any

from common.names import DiskId
from common.noderpc.disks import DiskSpec
from noded.hypervisor.kvm.disk_devices import node_name
from noded.hypervisor.kvm.home import Home
from noded.hypervisor.kvm.monitor import monitor
from noded.storage.qcow2.guests import OpenImages

MIB = 1 << 20
KEEP_S = 100.0  # QEMU goes through all tables of an image, some seconds for each TiB, and is silent


class GuestsImages(OpenImages):
    """Asks the QEMU that has an image open: it holds in memory what the file does not say yet."""

    def __init__(self, instances: Path) -> None:
        """Look for guests below ``instances``, where each has a directory."""
        self._instances = instances

    async def keep(self, disk: DiskSpec, name: DiskId) -> bool:
        return await self._ask(disk, "blockdev-snapshot-internal-sync", "device", name=name)

    async def forget(self, disk: DiskSpec, name: DiskId) -> bool:
        return await self._ask(disk, "blockdev-snapshot-delete-internal-sync", "device", name=name)

    async def grow(self, disk: DiskSpec) -> bool:
        return await self._ask(disk, "block_resize", "node_name", size=disk.size * MIB)

    async def _ask(self, disk: DiskSpec, command: str, which: str, **arguments: Any) -> bool:
        """Ask for something of a disk, which the argument ``which`` of the command tells."""
        home = Home(self._instances, disk.instance)
        record, process = home.record(), home.process()
        if record is None or process is None:
            return False
        with process:
            slot = (record.disks or {}).get(disk.id)
            if slot is None or process.has_ended:
                return False
        async with monitor(home.qmp_socket, record.name, patience_s=KEEP_S) as session:
            await session.ask(command, **{which: node_name(slot)}, **arguments)
        return True
