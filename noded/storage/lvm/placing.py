"""On which physical volumes new volumes go: near to one another, or apart. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from common.names import MiB
from noded.storage.lvm.exclusive import empty_devices
from noded.storage.lvm.extents import in_extents
from noded.storage.lvm.parse import Group
from noded.storage.lvm.refusals import no_space, no_thin_pool
from noded.storage.lvm.volumes import NewVolume


def lay_out(
    wanted: Sequence[NewVolume], group: Group
) -> tuple[tuple[NewVolume, tuple[str, ...]], ...]:
    """Return new volumes as they are made, each with its physical volumes; none: LVM's choice.

    What has some for itself is spread over all of them, so that none looks empty to others.

    Raises:
        InvalidRequest: as ``empty_devices``.
        NodeFailure: there is no room for all.
    """
    apart = [new for new in wanted if new.spindles is not None]
    together = [new for new in wanted if new.spindles is None]
    check_space(together, group)
    own = empty_devices(apart, group)
    chosen = {**place(together, group), **own}

    def made(new: NewVolume) -> NewVolume:
        devices = own.get(new.volume.place.name)
        return replace(new, stripes=len(devices)) if devices else new

    return tuple((made(new), chosen.get(new.volume.place.name, ())) for new in wanted)


def place(wanted: Sequence[NewVolume], group: Group) -> Mapping[str, tuple[str, ...]]:
    """Return the physical volumes that each new volume is to be put on; none: LVM's choice.

    All of them on one, if it has room, best on one that the instance is on already; else each
    disk's on one, so that a disk's data and what is noted about it do not fail apart. What is in
    a thin pool, or in stripes, cannot be put anywhere.
    """
    free = {device.name: device.free for device in group.usable_devices}
    if len(free) < 2:
        return {}
    movable = [new for new in wanted if not new.volume.place.thin_pool and new.stripes == 1]
    instances = {new.volume.instance for new in movable}
    used = {
        device
        for volume in group.volumes.values()
        if volume.instance in instances
        for device in volume.devices
    }
    disks = {new.volume.disk for new in movable}
    whole = _roomiest(free, used, _size(movable, group))
    if whole:
        return {new.volume.place.name: (whole,) for new in movable}
    chosen: dict[str, tuple[str, ...]] = {}
    for disk in sorted(disks):
        its = [new for new in movable if new.volume.disk == disk]
        device = _roomiest(free, used, _size(its, group))
        if device:
            free[device] = MiB(free[device] - _size(its, group))
            chosen |= {new.volume.place.name: (device,) for new in its}
    return chosen


def check_space(wanted: Sequence[NewVolume], group: Group) -> None:
    """Refuse more than a group has room for.

    Raises:
        NodeFailure: says what is free.
    """
    size = _size([new for new in wanted if not new.volume.place.thin_pool], group)
    if size > group.free:
        raise no_space(group.name, size, group.free)
    for new in wanted:
        thin_pool = new.volume.place.thin_pool
        if thin_pool and thin_pool not in group.thin_pools:
            raise no_thin_pool(group.name, thin_pool)


def _size(wanted: Sequence[NewVolume], group: Group) -> MiB:
    return MiB(sum(in_extents(new.size, group.extent, new.stripes) for new in wanted))


def _roomiest(free: Mapping[str, MiB], used: set[str], size: MiB) -> str:
    """Return the device with most room, best one in use; none if no room is enough."""
    enough = [name for name in free if free[name] >= size]
    return max(enough, key=lambda name: (name in used, free[name], name), default="")
