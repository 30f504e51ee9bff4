"""Making volumes, keeping what is on them, and making them larger: each by one process."""

from collections.abc import Mapping, Sequence

from common.errors import NodeFailure
from common.names import MiB
from noded.storage.lvm import commands, lvm
from noded.storage.lvm.exclusive import devices_to_grow_on, kept_on
from noded.storage.lvm.extents import in_extents
from noded.storage.lvm.ours import Found, change_unused
from noded.storage.lvm.parse import Group, parse_created
from noded.storage.lvm.placing import check_space, lay_out
from noded.storage.lvm.refusals import no_space_to_grow, not_ours
from noded.storage.lvm.volumes import NewSnapshot, NewVolume, Volume


async def remove_pointless(
    wanted: Sequence[NewVolume], groups: Mapping[str, Group]
) -> Mapping[str, Group]:
    """Remove what tells of a volume that is still to be made; return how the groups are then."""

    def is_done(volume: Volume) -> bool:
        there = groups[volume.place.group].volumes.get(volume.place.name)
        return there is not None and there.disk == volume.disk and not there.is_unfinished

    pointless = [
        new.volume
        for new in wanted
        if new.tells_of is not None and is_done(new.volume) and not is_done(new.tells_of)
    ]
    if not pointless:
        return groups
    await change_unused(commands.remove, pointless)
    return await lvm.look_at(*groups)


async def make(wanted: Sequence[NewVolume], group: Group) -> list[Volume]:
    """Make what is missing; return what is to be zeroed, which is active then."""
    there = {new: group.volumes.get(new.volume.place.name) for new in wanted}
    for new, report in there.items():
        if report is not None and report.disk != new.volume.disk:
            raise not_ours(new.volume, report)
    missing = [new for new, report in there.items() if report is None]
    half = [new.volume for new, report in there.items() if report and report.is_unfinished]
    lines = [commands.create(new, devices) for new, devices in lay_out(missing, group)]
    if half:
        lines.append(commands.activate(half))
    if lines:
        said = await lvm.change_all(lines)
        made = parse_created(said.stdout)
        if not made.issuperset(new.volume.place.name for new in missing):
            created = [new.volume for new in missing if new.volume.place.name in made]
            await change_unused(commands.remove, created)
            raise NodeFailure(
                f"LVM did not make all volumes in {group.name}: "
                f"{said.stderr.decode(errors='replace').strip()}",
                group=group.name,
            )
    return half + [new.volume for new in missing if not new.volume.place.thin_pool]


async def keep(wanted: Sequence[NewSnapshot], group: Group) -> None:
    """Take the snapshots that are missing, all by one process: the guest waits."""
    there = {each: group.volumes.get(each.kept.volume.place.name) for each in wanted}
    for each, report in there.items():
        if report is not None and report.disk != each.kept.volume.disk:
            raise not_ours(each.kept.volume, report)
    missing = [each for each, report in there.items() if report is None]
    if not missing:
        return
    check_space([each.kept for each in missing], group)
    lines = [commands.snapshot(each, kept_on(each, group)) for each in missing]
    said = await lvm.change_all(lines)
    made = parse_created(said.stdout)
    kept = [each.kept.volume for each in missing]
    if not made.issuperset(volume.place.name for volume in kept):
        await change_unused(commands.remove, [v for v in kept if v.place.name in made])
        raise NodeFailure(
            f"LVM did not take all snapshots in {group.name}: "
            f"{said.stderr.decode(errors='replace').strip()}",
            group=group.name,
        )


async def grow(volume: Volume, size: MiB, found: Found, *, alone: bool) -> None:
    more = MiB(in_extents(size, found.group.extent) - found.report.size)
    devices: tuple[str, ...] = ()
    if not volume.place.thin_pool:
        if alone:
            devices = devices_to_grow_on(volume, size, found.report, found.group)
        if more > found.group.free:
            raise no_space_to_grow(volume, more, found.group.free)
        if found.unzeroed is None:
            await lvm.change(commands.mark_unzeroed(volume, found.report.size))
    await lvm.change(commands.grow(volume, size, devices))
