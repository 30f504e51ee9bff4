"""The places that disks have in a guest's machine.

A disk keeps its slot as long as its guest lives, whatever comes and goes beside it: the guest, and
the target of its migration, know the disk by its slot.
"""

from collections.abc import Iterable, Mapping

from common.errors import Conflict
from common.names import DiskId

SLOTS = 16  # as many as an instance may have disks


def filled(disks: Iterable[DiskId], taken: Mapping[DiskId, int]) -> dict[DiskId, int]:
    """Return the slots that are taken, and those that disks without one get: the first free ones.

    Raises:
        Conflict: there are more disks than slots.
    """
    slots = dict(taken)
    for disk in disks:
        if disk not in slots:
            free = (slot for slot in range(SLOTS) if slot not in slots.values())
            slots[disk] = next(free, SLOTS)
    if any(slot >= SLOTS for slot in slots.values()):
        raise Conflict(f"A guest has places for {SLOTS} disks.")
    return slots
