"""Disks and nics that come to a fake guest and go from it while it runs."""

import asyncio
from collections.abc import Callable

from msgspec.structs import replace

from common.errors import Conflict, NodeFailure
from common.noderpc.disks import DiskSpec
from common.noderpc.instances import GuestSpec, GuestState
from noded.hypervisor.fake_guest import Guest
from noded.hypervisor.slots import disk_slots, nic_slots

LET_GO_S = 0.2  # from the wish that a disk be given up to its end


def placed(guest: GuestSpec) -> GuestSpec:
    """Return a guest whose disks and nics all have slots."""
    return replace(
        guest,
        slots=disk_slots((disk.id for disk in guest.disks), guest.slots),
        nic_slots=nic_slots((nic.id for nic in guest.nics), guest.nic_slots),
    )


async def settle_disks(
    guest: Guest, wanted: GuestSpec, open_disk: Callable[[DiskSpec], object]
) -> None:
    """Have a guest know its disks, and no others; see ``Hypervisor.ensure_disks``."""
    guest.check_answers()
    if guest.moving:
        raise Conflict(f"The disks of {wanted.name} cannot be changed here: it is being moved.")
    ids = {disk.id for disk in wanted.disks}
    kept = tuple(disk for disk in guest.spec.disks if disk.id in ids)
    if len(kept) < len(guest.spec.disks):
        await _let_go(guest, "a disk")
    slots = {disk.id: guest.spec.slots[disk.id] for disk in kept}
    guest.spec = replace(guest.spec, disks=kept, slots=slots)
    for disk in wanted.disks:
        if disk.id not in slots:
            open_disk(disk)
    guest.spec = placed(replace(guest.spec, disks=wanted.disks))


async def settle_nics(guest: Guest, wanted: GuestSpec) -> None:
    """Have a guest know its nics, and no others; see ``Hypervisor.ensure_nics``."""
    guest.check_answers()
    if guest.moving:
        raise Conflict(f"The nics of {wanted.name} cannot be changed here: it is being moved.")
    macs = {nic.id: nic.mac for nic in wanted.nics}
    kept = tuple(nic for nic in guest.spec.nics if macs.get(nic.id) == nic.mac)
    if len(kept) < len(guest.spec.nics):
        await _let_go(guest, "a nic")
    slots = {nic.id: guest.spec.nic_slots[nic.id] for nic in kept}
    guest.spec = placed(replace(guest.spec, nics=wanted.nics, nic_slots=slots))


def check_taps(guest: GuestSpec, taps: tuple[str, ...]) -> None:
    """Refuse a guest that has not as many taps as nics."""
    if len(taps) != len(guest.nics):
        raise NodeFailure(
            f"{guest.name} has {len(guest.nics)} nics and got {len(taps)} taps.",
            instance=guest.name,
        )


async def _let_go(guest: Guest, what: str) -> None:
    if guest.state is not GuestState.RUNNING:
        raise Conflict(f"{guest.spec.name} is paused, and cannot let go of {what}; stop it first.")
    await asyncio.sleep(LET_GO_S)
    guest.check_answers()
    if guest.is_deaf:
        raise NodeFailure(
            f"{guest.spec.name} was asked to let go of {what}, and has not done so. It may do so "
            "still: try again later, or stop it first."
        )
