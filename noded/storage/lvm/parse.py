"""What LVM reports: text in, values out."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from common.errors import NodeFailure
from common.model.backing import LvmBacking
from common.names import MiB
from common.noderpc.facts import Spindles
from noded.storage.lvm import names
from noded.storage.lvm.commands import UNZEROED
from noded.storage.lvm.volumes import VolumeReport

MIB = 1 << 20
_IN_USE = re.compile(r"Logical volume (\S+/\S+) (?:is |contains a filesystem )?in use")


@dataclass(frozen=True, slots=True)
class PhysicalVolume:
    """A device of a group."""

    name: str
    uuid: str
    size: MiB
    free: MiB
    is_allocatable: bool
    is_missing: bool
    is_empty: bool  # nothing of it is anybody's


@dataclass(frozen=True, slots=True)
class ThinPool:
    """A volume of which others take space as they are written to.

    Attributes:
        is_whole: it works, and no device that it needs is missing.
        zeroes: what former volumes left in it is not seen by new ones.
        data_percent, metadata_percent: how full it is, which is known while it is active.
        allotted: what its volumes can take of it together, which may be more than there is.
    """

    size: MiB
    is_whole: bool
    zeroes: bool
    data_percent: float | None
    metadata_percent: float
    allotted: MiB


@dataclass(frozen=True, slots=True)
class Group:
    """A volume group.

    Attributes:
        unzeroed: from where on volumes may hold old data, by name, in MiB.
    """

    name: str
    size: MiB
    extent: MiB
    devices: tuple[PhysicalVolume, ...]
    volumes: Mapping[str, VolumeReport]
    thin_pools: Mapping[str, ThinPool]
    unzeroed: Mapping[str, MiB]

    @property
    def free(self) -> MiB:
        """Return what new volumes can take: where allocation is allowed, of what is there."""
        return MiB(sum(each.free for each in self.usable_devices))

    @property
    def usable_devices(self) -> tuple[PhysicalVolume, ...]:
        return tuple(each for each in self.devices if each.is_allocatable and not each.is_missing)

    @property
    def spindles(self) -> Spindles:
        """Return how many devices new volumes can take space of, and how many for themselves."""
        sizes = [each.size for each in self.usable_devices]
        return Spindles(
            total=len(sizes),
            free=sum(each.is_empty for each in self.usable_devices),
            smallest=min(sizes, default=MiB(0)),
            largest=max(sizes, default=MiB(0)),
        )


def parse_groups(text: bytes) -> dict[str, Group]:
    """Read the output of ``commands.look``.

    Raises:
        NodeFailure: it is not as we know it; carries its beginning.

    Source: lvmreport(7); samples in tests/unit/noded/storage.
    """
    try:
        reports = msgspec.json.decode(text)["report"]
        return {report["vg"][0]["vg_name"]: _group(report) for report in reports}
    except (msgspec.DecodeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise NodeFailure(
            "LVM reports its volume groups in a way that is not known here.",
            problem=str(error),
            text=text[:200].decode(errors="replace"),
        ) from error


def parse_missing(stderr: str) -> tuple[str, ...]:
    """Return the groups that LVM did not find, of those that it was asked for."""
    start, end = 'Volume group "', '" not found'
    lines = (line.strip() for line in stderr.splitlines())
    return tuple(
        line[len(start) : -len(end)]
        for line in lines
        if line.startswith(start) and line.endswith(end)
    )


def parse_created(stdout: bytes) -> frozenset[str]:
    """Return the names of volumes that LVM's shell says it has made."""
    start, end = 'Logical volume "', '" created.'
    lines = (line.strip() for line in stdout.decode(errors="replace").splitlines())
    return frozenset(
        line[len(start) : -len(end)]
        for line in lines
        if line.startswith(start) and line.endswith(end)
    )


def parse_in_use(stderr: str) -> tuple[str, ...]:
    """Return the volumes, with their groups, that LVM left alone as somebody has them open."""
    return tuple(found[1] for found in _IN_USE.finditer(stderr))


def _group(report: Mapping[str, list[dict[str, str]]]) -> Group:
    (about,) = report["vg"]
    on: dict[str, tuple[str, ...]] = {}
    for segment in report["seg"]:
        devices = (each.partition("(")[0] for each in segment["devices"].split(",") if each)
        before = on.get(segment["lv_name"], ())
        on[segment["lv_name"]] = tuple(dict.fromkeys((*before, *devices)))
    zeroing = {row["lv_name"] for row in report["seg"] if row["zero"] == "zero"}
    group = about["vg_name"]
    pools = {row["lv_name"]: row for row in report["lv"] if "pool" in row["lv_layout"].split(",")}
    rows = [row for row in report["lv"] if row["lv_name"] not in pools]
    marks = {row["lv_name"]: _unzeroed(row) for row in rows}
    return Group(
        name=group,
        size=_mib(about["vg_size"]),
        extent=_mib(about["vg_extent_size"]),
        devices=tuple(map(_device, report["pv"])),
        volumes={row["lv_name"]: _volume(group, row, on) for row in rows},
        thin_pools={
            name: _pool(row, zeroes=name in zeroing, volumes=rows)
            for name, row in pools.items()
            if "thin" in row["lv_layout"].split(",")
        },
        unzeroed={name: start for name, start in marks.items() if start is not None},
    )


def _device(row: dict[str, str]) -> PhysicalVolume:
    return PhysicalVolume(
        name=row["pv_name"],
        uuid=row["pv_uuid"],
        size=_mib(row["pv_size"]),
        free=MiB(int(row["pv_free"]) // MIB),
        is_allocatable=bool(row["pv_allocatable"]),
        is_missing=bool(row["pv_missing"]),
        is_empty=int(row["pv_free"]) == int(row["pv_size"]),
    )


def _pool(row: dict[str, str], *, zeroes: bool, volumes: Iterable[dict[str, str]]) -> ThinPool:
    return ThinPool(
        size=_mib(row["lv_size"]),
        is_whole=not row["lv_health_status"],
        zeroes=zeroes,
        data_percent=float(row["data_percent"]) if row["data_percent"] else None,
        metadata_percent=float(row["metadata_percent"] or 0),
        allotted=MiB(sum(_mib(v["lv_size"]) for v in volumes if v["pool_lv"] == row["lv_name"])),
    )


def _volume(group: str, row: dict[str, str], on: Mapping[str, tuple[str, ...]]) -> VolumeReport:
    tags = row["lv_tags"].split(",")
    whose = names.owner(tags)
    disk, instance = whose or (None, None)
    name = row["lv_name"]
    return VolumeReport(
        place=LvmBacking(group=group, name=name, thin_pool=row["pool_lv"]),
        # That of a snapshot in its own volume is what is set aside for it, not what is read there.
        size=_mib(row.get("origin_size") or row["lv_size"]),
        uuid=row["lv_uuid"],
        disk=disk,
        instance=instance,
        adopted_by=names.adopter(tags),
        is_unfinished=whose is not None and _unzeroed(row) == 0,
        is_active=bool(row["lv_active"]),
        is_open=row["lv_device_open"] == "open",
        is_whole=row["lv_health_status"] != "partial",
        is_lost=row.get("lv_snapshot_invalid") == "snapshot invalid",
        is_merging=row.get("lv_merging") == "merging",
        origin=row["origin"],
        devices=on.get(name, ()),
    )


def _unzeroed(row: Mapping[str, Any]) -> MiB | None:
    """Return from where on there may be old data, in MiB, as the lowest of the marks says."""
    starts = [
        int(tag.removeprefix(UNZEROED))
        for tag in row["lv_tags"].split(",")
        if tag.startswith(UNZEROED)
    ]
    return MiB(min(starts)) if starts else None


def _mib(size: str) -> MiB:
    return MiB(-(-int(size) // MIB))
