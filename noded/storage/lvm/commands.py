"""Command lines of LVM: values in, arguments out. Source: lvm(8) of LVM2 2.03.16 and its pages.

``lvm`` by itself is a shell: it carries out the lines that it reads. So several volumes are made by
one process. Names are checked before (``names.check``), and no line needs quoting.
"""

from collections.abc import Iterable, Sequence

from common.names import MiB
from noded.storage.lvm import names
from noded.storage.lvm.volumes import NewSnapshot, NewVolume, Volume

Command = tuple[str, ...]  # of ``lvm``

UNZEROED = "gantry.zero-from."  # a volume with this tag may hold old data from so many MiB on
UNZEROED_ALL = f"{UNZEROED}0"

_REPORTS = {
    "vg": "vg_name,vg_size,vg_free,vg_extent_size",
    "pv": "pv_name,pv_uuid,pv_size,pv_free,pv_allocatable,pv_missing",
    "lv": (
        "lv_name,lv_uuid,lv_size,lv_tags,lv_layout,lv_active,lv_device_open,lv_health_status,"
        "origin,origin_size,pool_lv,data_percent,metadata_percent,lv_snapshot_invalid,lv_merging"
    ),
    "seg": "lv_name,devices,zero",
    "pvseg": "pv_name",
}


def look(groups: Iterable[str]) -> Command:
    """Report on groups, all that is in them, and what they are made of."""
    fields = (
        word
        for report, chosen in _REPORTS.items()
        for word in ("--configreport", report, "--options", chosen)
    )
    form = ("--reportformat", "json", "--units", "b", "--nosuffix")
    return ("fullreport", *form, *fields, *groups)


def create(new: NewVolume, devices: Sequence[str] = ()) -> Command:
    """Make a volume that nothing activates by itself, and that is marked as holding old data.

    Args:
        new: what to make.
        devices: the physical volumes to take; none: whichever LVM likes.
    """
    place = new.volume.place
    size = f"{new.size}m"
    kind: tuple[str, ...]
    if place.thin_pool:
        kind = ("--activate", "n", "--type", "thin", "--thinpool", place.thin_pool,
                "--virtualsize", size)  # fmt: skip
    else:
        kind = ("--activate", "y", "--ignoreactivationskip", "--addtag", UNZEROED_ALL,
                "--wipesignatures", "n", "--zero", "n", "--size", size)  # fmt: skip
    if new.stripes > 1:
        kind += ("--stripes", str(new.stripes))
        kind += ("--stripesize", f"{new.stripe_kib}k") if new.stripe_kib else ()
    return ("lvcreate", "--yes", "--setactivationskip", "y", *_tagged(new.volume), *kind,
            "--name", place.name, place.group, *devices)  # fmt: skip


def remove(volumes: Iterable[Volume]) -> Command:
    return ("lvremove", "--yes", *_names(volumes))


def finish(volumes: Iterable[Volume]) -> Command:
    """Unmark volumes that are zeros as far as wanted, and take their devices away."""
    return ("lvchange", "--activate", "n", "--deltag", UNZEROED_ALL, *_names(volumes))


def finish_active(volumes: Iterable[Volume]) -> Command:
    """Unmark volumes that are zeros as far as wanted, and leave them their devices."""
    return ("lvchange", "--deltag", UNZEROED_ALL, *_names(volumes))


def activate(volumes: Iterable[Volume]) -> Command:
    """Give volumes a device; a snapshot gets one together with its volume, which LVM asks about."""
    return ("lvchange", "--yes", "--activate", "y", "--ignoreactivationskip", *_names(volumes))


def deactivate(volumes: Iterable[Volume]) -> Command:
    return ("lvchange", "--activate", "n", *_names(volumes))


def rename(volume: Volume, new: Volume) -> Command:
    return ("lvrename", volume.name, new.name)


def begin_adoption(volume: Volume, name: str) -> Command:
    return ("lvchange", "--addtag", names.adopting_tag(volume), f"{volume.place.group}/{name}")


def end_adoption(volume: Volume) -> Command:
    """Mark a volume as ours, and have nothing activate it any more."""
    return ("lvchange", "--activate", "n", "--setactivationskip", "y", *_tagged(volume),
            "--deltag", names.adopting_tag(volume), volume.name)  # fmt: skip


def begin_giving_back(volume: Volume) -> Command:
    """Mark a volume as not ours any more, in one change."""
    ours = (word for tag in names.tags_of(volume) for word in ("--deltag", tag))
    return ("lvchange", "--activate", "n", "--setactivationskip", "n", *ours,
            "--addtag", names.adopting_tag(volume), volume.name)  # fmt: skip


def end_giving_back(volume: Volume, name: str) -> Command:
    return ("lvchange", "--deltag", names.adopting_tag(volume), f"{volume.place.group}/{name}")


def take_name(volume: Volume, name: str) -> Command:
    return ("lvrename", f"{volume.place.group}/{name}", volume.name)


def leave_name(volume: Volume, name: str) -> Command:
    return ("lvrename", volume.name, f"{volume.place.group}/{name}")


def mark_unzeroed(volume: Volume, start: MiB) -> Command:
    return ("lvchange", "--addtag", f"{UNZEROED}{start}", volume.name)


def unmark_unzeroed(volume: Volume, start: MiB) -> Command:
    return ("lvchange", "--deltag", f"{UNZEROED}{start}", volume.name)


def grow(volume: Volume, size: MiB, devices: Sequence[str] = ()) -> Command:
    """Make a volume larger, on these physical volumes; none: whichever LVM likes."""
    return ("lvextend", "--size", f"{size}m", volume.name, *devices)


def snapshot(wanted: NewSnapshot, devices: Sequence[str] = ()) -> Command:
    """Take a snapshot; in a thin pool it takes space as either is written to.

    ``devices`` are as for ``create``.
    """
    volume, kept = wanted
    size = () if volume.place.thin_pool else ("--size", f"{kept.size}m")
    return ("lvcreate", "--yes", "--snapshot", "--setactivationskip", "y", *_tagged(kept.volume),
            *size, "--name", kept.volume.place.name, volume.name, *devices)  # fmt: skip


def roll_back(snapshot: Volume) -> Command:
    return ("lvconvert", "--yes", "--merge", snapshot.name)


def script(lines: Iterable[Command]) -> bytes:
    """Return what LVM's shell is given to read."""
    return "".join(f"{' '.join(line)}\n" for line in lines).encode()


def _tagged(volume: Volume) -> Iterable[str]:
    return (word for tag in names.tags_of(volume) for word in ("--addtag", tag))


def _names(volumes: Iterable[Volume]) -> Iterable[str]:
    return (volume.name for volume in volumes)
