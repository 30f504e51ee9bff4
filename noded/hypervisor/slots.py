"""The places that disks and nics have in a guest's machine.

A device keeps its slot as long as its guest lives, whatever comes and goes beside it: the guest,
and the target of its migration, know it by its slot.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from common.errors import Conflict
from common.names import DiskId, NicId

DISK_SLOTS = 16  # as many as an instance may have disks
NIC_SLOTS = 8  # and nics

_Id = TypeVar("_Id", DiskId, NicId)


def filled(
    devices: Iterable[_Id], taken: Mapping[_Id, int], *, most: int, what: str
) -> dict[_Id, int]:
    """Return the slots that are taken, and those that devices without one get: the first free ones.

    Args:
        devices: that are to have one.
        taken: by device.
        most: how many there are.
        what: they are for, as "disks".

    Raises:
        Conflict: there are more devices than slots.
    """
    slots = dict(taken)
    for device in devices:
        if device not in slots:
            free = (slot for slot in range(most) if slot not in slots.values())
            slots[device] = next(free, most)
    if any(not 0 <= slot < most for slot in slots.values()):
        raise Conflict(f"A guest has places for {most} {what}.")
    return slots


def disk_slots(disks: Iterable[DiskId], taken: Mapping[DiskId, int]) -> dict[DiskId, int]:
    """Return the slots of disks; see ``filled``."""
    return filled(disks, taken, most=DISK_SLOTS, what="disks")


def nic_slots(nics: Iterable[NicId], taken: Mapping[NicId, int]) -> dict[NicId, int]:
    """Return the slots of nics; see ``filled``."""
    return filled(nics, taken, most=NIC_SLOTS, what="nics")
