"""On which physical volumes volumes go that share them with no other instance's. Pure."""

from collections.abc import Mapping, Sequence

from common.errors import InvalidRequest
from common.model.spindles import spindles_for, standard_size
from common.names import MiB
from noded.storage.lvm.extents import in_extents
from noded.storage.lvm.parse import Group
from noded.storage.lvm.refusals import no_empty_devices, no_space, no_space_to_grow
from noded.storage.lvm.volumes import NewSnapshot, NewVolume, Volume, VolumeReport


def empty_devices(wanted: Sequence[NewVolume], group: Group) -> Mapping[str, tuple[str, ...]]:
    """Return the physical volumes that each new volume gets for itself, as many as it is to have.

    Raises:
        InvalidRequest: it is to have none, or too few for its size, or is in a thin pool.
        NodeFailure: not so many are empty (``free``).
    """
    empty = sorted(
        (each for each in group.usable_devices if each.is_empty),
        key=lambda each: (-each.size, each.name),
    )
    chosen: dict[str, tuple[str, ...]] = {}
    for new in wanted:
        count = _count(new, group)
        if count > len(empty):
            raise no_empty_devices(group.name, count, len(empty))
        its, empty = empty[:count], empty[count:]
        least = min(each.free // group.extent * group.extent for each in its)
        if in_extents(new.size, group.extent, count) > least * count:
            raise no_space(group.name, new.size, MiB(least * count))
        chosen[new.volume.place.name] = tuple(each.name for each in its)
    return chosen


def devices_to_grow_on(
    volume: Volume, size: MiB, report: VolumeReport, group: Group
) -> tuple[str, ...]:
    """Return the physical volumes that a volume has, if it can have this size on them.

    Raises:
        NodeFailure: it cannot (``free_mib``).
    """
    its = [each for each in group.usable_devices if each.name in report.devices]
    standard = standard_size(group.spindles.smallest)
    free = sum(max(0, each.free - max(0, each.size - standard)) for each in its)
    more = MiB(in_extents(size, group.extent, max(1, len(its))) - report.size)
    if more > free:
        raise no_space_to_grow(volume, more, MiB(free))
    return report.devices


def kept_on(wanted: NewSnapshot, group: Group) -> tuple[str, ...]:
    """Return the physical volumes that a snapshot is put on; none: LVM's choice.

    Of a volume that has some for itself it is these.

    Raises:
        NodeFailure: there is no room for it on them (``free_mib``).
    """
    if wanted.kept.spindles is None or wanted.volume.place.thin_pool:
        return ()
    devices = group.volumes[wanted.volume.place.name].devices
    free = MiB(sum(each.free for each in group.usable_devices if each.name in devices))
    size = in_extents(wanted.kept.size, group.extent)
    if size > free:
        raise no_space(f"the physical volumes of {wanted.volume.name}", size, free)
    return devices


def _count(new: NewVolume, group: Group) -> int:
    """Return how many physical volumes a new volume is to have."""
    name = new.volume.name
    if new.volume.place.thin_pool:
        raise InvalidRequest(
            f"{name} cannot be in a thin pool, which instances share: storage is exclusive here."
        )
    if not new.spindles:
        raise InvalidRequest(
            f"It was not said how many physical volumes {name} is to have for itself: storage is "
            "exclusive here."
        )
    needed = spindles_for(new.size, group.spindles.smallest)
    if needed and needed > new.spindles:
        raise InvalidRequest(
            f"{name} of {new.size} MiB needs {needed} physical volumes for itself, and was to have "
            f"{new.spindles}.",
            needed=needed,
        )
    return new.spindles
