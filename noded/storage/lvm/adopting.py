"""Making volumes ours that were there before, and giving them back: what is left to be done. Pure.

A volume gets its new name and its marks in three changes of its group, and loses them in three.
From the first on it is marked, so that whoever goes on after a crash knows it under either name. It
is ours from the last one on only, so nobody deletes it before.
"""

from collections.abc import Mapping

from common.errors import Conflict, InvalidRequest
from common.names import MiB
from noded.storage.lvm import names
from noded.storage.lvm.refusals import in_use, not_ours, not_there
from noded.storage.lvm.volumes import Volume, VolumeReport


def check_name(name: str) -> None:
    """Refuse what LVM must not be given, and what would be taken for one of ours.

    Raises:
        InvalidRequest: names it.
    """
    if not names.is_name(name):
        raise InvalidRequest(f"“{name}” is no name of a logical volume.")


def check_adoptable(
    name: str, volume: Volume, size: MiB, there: Mapping[str, VolumeReport]
) -> None:
    """Refuse a volume that cannot become a disk.

    Raises:
        Conflict: it is a disk's already, or something else has the new name.
        NodeFailure: it is not there, open, of another size, or a snapshot or with some.
    """
    whole, report = f"{volume.place.group}/{name}", there.get(name)
    if volume.place.name in there:
        raise not_ours(volume, there[volume.place.name])
    if report is None:
        raise not_there(volume, "adopted", f"there is no volume {whole}")
    other = report.disk or report.adopted_by
    if other and other != volume.disk:
        raise Conflict(f"The volume {whole} is one of the disk {other}.", volume=whole)
    if report.is_open:
        raise in_use(volume)
    if report.size != size:
        raise not_there(volume, "adopted", f"{whole} has {report.size} MiB, and not {size}")
    if not report.is_whole:
        raise not_there(volume, "adopted", "a physical volume that it needs is missing")
    for each in there.values():
        if each.goes_with_origin and name in (each.place.name, each.origin):
            raise not_there(volume, "adopted", f"{each.place.name} is a snapshot of {each.origin}")


def is_adopted(volume: Volume, there: Mapping[str, VolumeReport]) -> bool:
    report = there.get(volume.place.name)
    return report is not None and report.disk == volume.disk


def is_on_its_way(name: str, volume: Volume, there: Mapping[str, VolumeReport]) -> bool:
    """Tell whether a volume of this name is marked as becoming a disk, or as having been one."""
    report = there.get(name)
    return report is not None and report.disk is None and report.adopted_by == volume.disk
