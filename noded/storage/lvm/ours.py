"""Volumes that are ours, as they are; and changing those that nobody has open."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from common.execute import CommandFailed
from common.names import MiB
from noded.storage.lvm import lvm
from noded.storage.lvm.commands import Command
from noded.storage.lvm.parse import Group, parse_in_use
from noded.storage.lvm.refusals import LOST, in_use, not_there
from noded.storage.lvm.volumes import Volume, VolumeReport


class Found(NamedTuple):
    """A volume that is ours, as it is, and all that is in its group."""

    report: VolumeReport
    group: Group

    @property
    def unzeroed(self) -> MiB | None:
        """Say from where on it may hold what former volumes have left; None: nowhere."""
        return self.group.unzeroed.get(self.report.place.name)


async def find_ours(volumes: Sequence[Volume]) -> dict[Volume, Found]:
    """Return those that are there and ours."""
    groups = await lvm.look(volume.place.group for volume in volumes)
    found = {}
    for volume in volumes:
        group = groups.get(volume.place.group)
        report = group.volumes.get(volume.place.name) if group else None
        if group and report and report.disk == volume.disk:
            found[volume] = Found(report, group)
    return found


def usable(volume: Volume, found: Found | None, what: str) -> Found:
    """Return a volume that can be used as it is.

    Raises:
        NodeFailure: says why it cannot.
    """
    if found is None:
        raise not_there(volume, what)
    if found.report.is_unfinished:
        raise not_there(volume, what, "it is not finished; its creation was cut off")
    if not found.report.is_whole:
        raise not_there(volume, what, "a physical volume that it needs is missing")
    if found.report.is_lost:
        raise not_there(volume, what, LOST)
    return found


def check_snapshots(volume: Volume, group: Group) -> None:
    """Refuse to remove what a snapshot that is not ours would be removed with."""
    for each in group.volumes.values():
        if each.origin == volume.place.name and not each.place.thin_pool and each.disk is None:
            raise not_there(volume, "removed", f"{each.place.name} is a snapshot of it")


async def change_unused(
    command: Callable[[Iterable[Volume]], Command], volumes: Iterable[Volume]
) -> None:
    """Change volumes that nobody may have open. LVM itself waits for those who only have a look."""
    every = list(volumes)
    if not every:
        return
    try:
        await lvm.change(command(every))
    except CommandFailed as error:
        used = parse_in_use(error.detail.get("stderr", ""))
        for volume in every:
            if volume.name in used:
                raise in_use(volume) from error
        raise
