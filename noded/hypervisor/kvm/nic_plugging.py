"""Nics that come to a running guest, and that it has to let go of.

As with disks, which nics a guest has is written down before QEMU is told to put one in, and after
it has let go of one.
"""

import contextlib
import os
from collections.abc import Collection, Mapping

from msgspec.structs import replace

from common.errors import Conflict, NodeFailure
from common.model.kvm import KvmParameters
from common.names import NicId
from common.noderpc.instances import GuestSpec
from common.noderpc.network import NicSpec
from noded.hypervisor.kvm import nic_devices
from noded.hypervisor.kvm.commands import machine_of
from noded.hypervisor.kvm.home import Home
from noded.hypervisor.kvm.ifup import Ifup
from noded.hypervisor.kvm.letting_go import ask_to_let_go, devices, still_has
from noded.hypervisor.kvm.monitor import CommandRefused, Monitor, monitor
from noded.hypervisor.kvm.nic_devices import Named, Tap, backend_name, device_name
from noded.hypervisor.kvm.taps import take_tap
from noded.hypervisor.slots import nic_slots
from noded.system.threads import in_thread


async def settle_nics(
    home: Home, guest: GuestSpec, taps: tuple[str, ...], parameters: KvmParameters, ifup: Ifup
) -> None:
    """Have a guest that answers know its nics, and no others; see ``Hypervisor.ensure_nics``.

    Args:
        home: the guest's.
        guest: with the nics that it is to have.
        taps: in their order.
        parameters: with which the guest runs.
        ifup: sets up their taps.
    """
    record = home.record()
    if record is None or record.nic_slots is None:
        raise Conflict(
            f"Which nics {guest.name} has is not known, since an older version has started it; "
            "stop it to change them.",
            instance=guest.name,
        )
    async with monitor(home.qmp_socket, guest.name) as session:
        plugging = _Plugging(session, home, guest.name, parameters)
        await plugging.take_out(await plugging.unlike({nic.id: nic for nic in guest.nics}))
        lacking = {
            index: tap
            for index, (nic, tap) in enumerate(zip(guest.nics, taps, strict=True))
            if await plugging.lacks(nic)
        }
    await ifup.run(guest, lacking)  # while others may ask QEMU
    async with monitor(home.qmp_socket, guest.name) as session:
        plugging = _Plugging(session, home, guest.name, parameters)
        for index, tap in lacking.items():
            await plugging.put_in(guest.nics[index], tap)


class _Plugging:
    """One guest whose nics are changed."""

    def __init__(self, session: Monitor, home: Home, name: str, parameters: KvmParameters) -> None:
        self._session, self._home, self._name = session, home, name
        self._parameters = parameters

    async def unlike(self, wanted: Mapping[NicId, NicSpec]) -> list[NicId]:
        """Return the nics that the guest is not to have, or not as they are."""
        there = await devices(self._session)
        return [
            nic
            for nic, slot in self._slots().items()
            if nic not in wanted
            or (device_name(slot) in there and await self._mac(slot) != wanted[nic].mac)
        ]

    async def take_out(self, nics: Collection[NicId]) -> None:
        """Have the guest let go of nics, and QEMU of their taps.

        Raises:
            Conflict: it is paused, and cannot.
            NodeFailure: it has not, but may do so later.
        """
        slots = {nic: self._slots()[nic] for nic in nics}
        unwanted = [device_name(slot) for slot in slots.values()]
        left = await ask_to_let_go(self._session, self._name, unwanted, what="a nic")
        for nic, slot in slots.items():
            if device_name(slot) not in left:
                await self._unplug(slot)
                self._write({each: n for each, n in self._slots().items() if each != nic})
        if kept := [nic for nic, slot in slots.items() if device_name(slot) in left]:
            raise NodeFailure(still_has(self._name, kept, what="nic"), instance=self._name)

    async def lacks(self, nic: NicSpec) -> bool:
        """Tell whether the guest has not got a nic."""
        slot = nic_slots([nic.id], self._slots())[nic.id]
        return device_name(slot) not in await devices(self._session)

    async def put_in(self, nic: NicSpec, tap: str) -> None:
        """Plug a nic in that the guest lacks.

        Raises:
            NodeFailure: the tap cannot be opened, or QEMU refuses it; nothing of it is left.
        """
        slots = nic_slots([nic.id], self._slots())
        slot = slots[nic.id]
        await self._unplug(slot)  # what is left of a try that was cut off holds the tap
        taken = await in_thread(
            lambda: take_tap(tap, queues=nic.queues, vhost=self._parameters.vhost_net)
        )
        with contextlib.ExitStack() as ours:  # QEMU gets copies of its own
            for descriptor in (*taken.queues, *taken.vhosts):
                ours.callback(os.close, descriptor)
            self._write(slots)
            try:
                await self._plug(nic, slot, taken)
            except NodeFailure:
                await self._unplug(slot)
                self._write({each: n for each, n in slots.items() if each != nic.id})
                raise

    async def _plug(self, nic: NicSpec, slot: int, tap: Tap) -> None:
        queues = await self._lend(f"tap{slot}", tap.queues)
        vhosts = await self._lend(f"vhost{slot}", tap.vhosts)
        await self._session.ask("netdev_add", **nic_devices.backend(slot, Named(queues, vhosts)))
        machine = machine_of(self._parameters)
        device = nic_devices.device(nic, slot, self._parameters, machine)
        await self._session.ask("device_add", **device)

    async def _lend(self, name: str, descriptors: tuple[int, ...]) -> tuple[str, ...]:
        names = tuple(f"{name}-{number}" for number in range(len(descriptors)))
        for each, descriptor in zip(names, descriptors, strict=True):
            await self._session.lend(each, descriptor)
        return names

    async def _unplug(self, slot: int) -> None:
        """Have QEMU let go of the tap of a slot; its device is gone, or never was."""
        with contextlib.suppress(CommandRefused):  # it has let go of it already
            await self._session.ask("netdev_del", id=backend_name(slot))

    async def _mac(self, slot: int) -> str:
        path = f"/machine/peripheral/{device_name(slot)}"
        return str(await self._session.ask("qom-get", path=path, property="mac")).lower()

    def _slots(self) -> dict[NicId, int]:
        record = self._home.record()
        return dict(record.nic_slots or {}) if record else {}

    def _write(self, slots: dict[NicId, int]) -> None:
        if record := self._home.record():
            self._home.write(replace(record, nics=tuple(slots), nic_slots=slots))
