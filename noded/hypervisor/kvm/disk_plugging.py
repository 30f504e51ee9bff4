"""Disks that come to a running guest, that it has to let go of, and that have grown.

Which disks a guest has, and in which slots, is written down before QEMU is told to put one in, and
after it has closed one; whoever was cut off in between learns from QEMU what is there.
"""

import asyncio
import contextlib
import os
from collections.abc import Collection

from msgspec.structs import replace

from common.errors import Conflict, NodeFailure
from common.model.backing import Qcow2Backing
from common.model.disk import Mode
from common.model.kvm import KvmParameters
from common.names import DiskId
from common.noderpc.disks import DiskSpec
from common.noderpc.instances import GuestSpec
from noded.hypervisor.interface import OpenDisk
from noded.hypervisor.kvm import disk_devices
from noded.hypervisor.kvm.commands import machine_of
from noded.hypervisor.kvm.disk_devices import device_name, node_name
from noded.hypervisor.kvm.disk_source import size_of, source_of
from noded.hypervisor.kvm.home import Home
from noded.hypervisor.kvm.letting_go import ask_to_let_go, devices, still_has
from noded.hypervisor.kvm.monitor import CommandRefused, Monitor, monitor
from noded.hypervisor.kvm.parse import parse_block_nodes
from noded.hypervisor.kvm.tpm import with_drives
from noded.hypervisor.slots import disk_slots
from noded.system.threads import in_thread

CLOSING_S = 2.0
MIB = 1 << 20


async def settle_disks(
    home: Home, guest: GuestSpec, parameters: KvmParameters, open_disk: OpenDisk
) -> None:
    """Have a guest that answers know its disks, and no others; see ``Hypervisor.ensure_disks``."""
    record = home.record()
    if record is None or record.disks is None:
        raise Conflict(
            f"Which disks {guest.name} has is not known, since an older version has started it; "
            "stop it to change them.",
            instance=guest.name,
        )
    wanted = {disk.id for disk in guest.disks}
    if parameters.tpm and parameters.tpm not in wanted:
        raise Conflict(
            f"{guest.name} runs with a TPM that keeps its state on disk {parameters.tpm}; stop it "
            "to take that disk away.",
            instance=guest.name,
        )
    async with monitor(home.qmp_socket, guest.name) as session:
        plugging = _Plugging(session, home, guest.name, parameters, open_disk)
        await plugging.take_out([disk for disk in record.disks if disk not in wanted])
        for disk in with_drives(guest, parameters).disks:
            await plugging.put_in(disk)


class _Plugging:
    """One guest whose disks are changed."""

    def __init__(
        self,
        session: Monitor,
        home: Home,
        name: str,
        parameters: KvmParameters,
        open_disk: OpenDisk,
    ) -> None:
        self._session, self._home, self._name = session, home, name
        self._parameters, self._open_disk = parameters, open_disk

    async def take_out(self, disks: Collection[DiskId]) -> None:
        """Have the guest let go of disks, and QEMU close them.

        Raises:
            Conflict: it is paused, and cannot.
            NodeFailure: it has not, but may do so later.
        """
        slots = {disk: self._slots()[disk] for disk in disks}
        unwanted = [device_name(slot) for slot in slots.values()]
        left = await ask_to_let_go(self._session, self._name, unwanted, what="a disk")
        for disk, slot in slots.items():
            if device_name(slot) not in left:
                await self._close(slot)
                self._write({each: n for each, n in self._slots().items() if each != disk})
        if kept := [disk for disk, slot in slots.items() if device_name(slot) in left]:
            raise NodeFailure(still_has(self._name, kept, what="disk"), instance=self._name)

    async def put_in(self, disk: DiskSpec) -> None:
        """Put a disk in that the guest lacks; tell it of one that has grown.

        Raises:
            NodeFailure: the disk cannot be opened, or QEMU refuses it; nothing of it is left.
        """
        slots = disk_slots([disk.id], self._slots())
        slot = slots[disk.id]
        if device_name(slot) in await devices(self._session):
            return await self._grow(disk, slot)
        descriptor = await in_thread(self._open_disk, disk)
        with contextlib.closing(os.fdopen(descriptor, "rb", buffering=0)):
            await self._close(slot)  # what is left of a try that was cut off
            self._write(slots)
            try:
                await self._plug(disk, slot, descriptor)
            except NodeFailure:
                await self._close(slot)
                self._write({each: n for each, n in slots.items() if each != disk.id})
                raise

    async def _plug(self, disk: DiskSpec, slot: int, descriptor: int) -> None:
        fdset = await self._session.add(descriptor)
        source = source_of(descriptor, self._parameters, fdset=fdset)
        node = disk_devices.block_node(disk, slot, source, self._parameters)
        await self._session.ask("blockdev-add", **node)
        machine = machine_of(self._parameters)
        device = disk_devices.device(disk, slot, self._parameters, machine)
        await self._session.ask("device_add", **device)

    async def _grow(self, disk: DiskSpec, slot: int) -> None:
        """Tell of the size that a disk really has: telling less would cut a file."""
        if disk.mode is Mode.READ_ONLY:
            return  # QEMU resizes what it could write to, only; the next start will show it
        nodes = parse_block_nodes(await self._session.ask("query-named-block-nodes", flat=True))
        if nodes[node_name(slot)].size >= disk.size * MIB:
            return
        size = disk.size * MIB
        if not isinstance(disk.backing, Qcow2Backing):  # of which the image tells
            descriptor = await in_thread(self._open_disk, disk)
            with contextlib.closing(os.fdopen(descriptor, "rb", buffering=0)):
                size = size_of(descriptor)
        await self._session.ask("block_resize", node_name=node_name(slot), size=size)

    async def _close(self, slot: int) -> None:
        """Have QEMU close what it has in a slot; its device is gone, or never was."""
        answer = await self._session.ask("query-named-block-nodes", flat=True)
        node = parse_block_nodes(answer).get(node_name(slot))
        if node is not None:
            await self._delete(node_name(slot))
            if node.fdset is not None:  # else the descriptor would stay open
                await self._session.ask("remove-fd", fdset_id=node.fdset)

    async def _delete(self, node: str) -> None:
        """Delete a block node; for a moment, it is in use still by a device that is gone."""
        loop = asyncio.get_running_loop()
        end = loop.time() + CLOSING_S
        while True:
            try:
                await self._session.ask("blockdev-del", node_name=node)
            except CommandRefused:
                if loop.time() >= end:
                    raise
            else:
                return
            await self._session.news(CLOSING_S / 10)

    def _slots(self) -> dict[DiskId, int]:
        record = self._home.record()
        return dict(record.disks or {}) if record else {}

    def _write(self, slots: dict[DiskId, int]) -> None:
        if record := self._home.record():
            self._home.write(replace(record, disks=slots))
