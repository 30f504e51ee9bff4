"""A volume group that exists in memory only."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from common.names import MiB
from noded.storage.lvm.extents import in_extents
from noded.storage.lvm.parse import Group, PhysicalVolume
from noded.storage.lvm.volumes import VolumeReport

TEBIBYTE = MiB(1 << 20)
EXTENT = MiB(4)


@dataclass
class FakeGroup:
    """A volume group on physical volumes of one size; thin pools in it are named, with their sizes.

    What is on none that it says is on the first of them.
    """

    capacity: MiB = TEBIBYTE
    spindles: int = 1
    volumes: dict[str, VolumeReport] = field(default_factory=dict)
    thin_pools: dict[str, MiB] = field(default_factory=dict)
    rooms: dict[str, MiB] = field(default_factory=dict)  # of snapshots, which have another size

    @property
    def free(self) -> MiB:
        taken = sum(size for _, size in self._thick()) + sum(self.thin_pools.values())
        return MiB(self.capacity - taken)

    def as_told(self, name: str) -> Group:
        """Return it as LVM would tell of it under this name; what is in thin pools is left out."""
        return Group(
            name=name,
            size=self.capacity,
            extent=EXTENT,
            devices=tuple(self._devices(name)),
            volumes={each.place.name: each for each, _ in self._thick()},
            thin_pools={},
            unzeroed={},
        )

    def _devices(self, name: str) -> Iterator[PhysicalVolume]:
        names = [f"/dev/{name}"]
        names += [f"/dev/{name}{number}" for number in range(2, self.spindles + 1)]
        size, taken = MiB(self.capacity // self.spindles), dict.fromkeys(names, 0)
        taken[names[0]] += sum(self.thin_pools.values())
        for each, of_it in self._thick():
            devices = [device for device in each.devices if device in taken] or names[:1]
            for device in devices:
                taken[device] += -(-of_it // len(devices))
        for device, used in taken.items():
            free = MiB(max(0, size - used))
            yield PhysicalVolume(
                name=device, uuid=device, size=size, free=free, is_allocatable=True,
                is_missing=False, is_empty=not used,
            )  # fmt: skip

    def _thick(self) -> Iterator[tuple[VolumeReport, MiB]]:
        """Yield what takes space of the group itself, and how much."""
        for name, each in self.volumes.items():
            if not each.place.thin_pool:
                has_room = each.goes_with_origin and name in self.rooms
                yield each, self.rooms[name] if has_room else each.size


def extents(size: MiB) -> MiB:
    """Return what a volume of ``size`` takes of a fake group."""
    return in_extents(size, EXTENT)
