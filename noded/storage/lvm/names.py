"""What volumes of disks are called, and how they are marked."""

import re
from collections.abc import Iterable

from common.errors import InvalidRequest
from common.model.pool import Pool
from common.names import DiskId, InstanceId, is_uuid
from noded.storage.lvm.volumes import Volume

OURS = "gantry"
_DISK, _INSTANCE = "gantry.disk.", "gantry.instance."
_ADOPTED = "gantry.adopted-by."  # of what is not ours yet, or not any more
_NAME = re.compile(r"[A-Za-z0-9_+.][A-Za-z0-9_+.-]{0,126}")  # Source: lvm(8), “valid names”


def check(*volumes: Volume) -> None:
    """Refuse what cannot be a disk's volume.

    Raises:
        InvalidRequest: names it.
    """
    for volume in volumes:
        place = volume.place
        belongs = is_uuid(volume.disk) and place.name.startswith(f"{volume.disk}.")
        names = (place.group, place.name, *([place.thin_pool] if place.thin_pool else []))
        if not belongs or not all(map(is_name, names)):
            raise InvalidRequest(
                f"{volume.name!r} is no name of a volume of the disk {volume.disk}.",
                disk=volume.disk,
            )


def is_name(text: str) -> bool:
    """Tell whether LVM may be given ``text`` as the name of a group or volume."""
    return _NAME.fullmatch(text) is not None and text not in (".", "..")


def split(pool: Pool) -> tuple[str, str]:
    """Return the group of a pool, and its thin pool; the latter is empty if it is the group.

    Raises:
        InvalidRequest: that is no name of either.
    """
    group, _, thin_pool = pool.name.partition("/")
    if not is_name(group) or (thin_pool and not is_name(thin_pool)) or pool.name.endswith("/"):
        raise InvalidRequest(f"{pool.name!r} is no name of a volume group, or of a thin pool.")
    return group, thin_pool


def tags_of(volume: Volume) -> tuple[str, ...]:
    """Return how a volume is marked, so that it is known for ours whatever happens to us."""
    return (OURS, f"{_DISK}{volume.disk}", f"{_INSTANCE}{volume.instance}")


def adopting_tag(volume: Volume) -> str:
    """Return how a volume is marked that is about to become ours, or nobody's again."""
    return f"{_ADOPTED}{volume.disk}"


def adopter(tags: Iterable[str]) -> DiskId | None:
    """Return which disk a volume with these tags is becoming, or has been."""
    found = (tag.removeprefix(_ADOPTED) for tag in tags if tag.startswith(_ADOPTED))
    return next(map(DiskId, found), None)


def owner(tags: Iterable[str]) -> tuple[DiskId, InstanceId] | None:
    """Return whose volume has these tags; None if it is not ours."""
    given = set(tags)
    disks = [tag.removeprefix(_DISK) for tag in given if tag.startswith(_DISK)]
    instances = [tag.removeprefix(_INSTANCE) for tag in given if tag.startswith(_INSTANCE)]
    if OURS not in given or len(disks) != 1 or len(instances) != 1:
        return None
    return DiskId(disks[0]), InstanceId(instances[0])
