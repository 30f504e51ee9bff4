"""Physical volumes and groups, by LVM's commands."""

import re
from typing import Any, Protocol

import msgspec

from common.errors import Conflict, NodeFailure, NotFound
from common.names import MiB
from common.noderpc.physical_volumes import PhysicalVolumeReport, VolumeGroupReport
from noded.storage.lvm.refusals import no_group
from noded.system.execute import execute

LOOK_S, CHANGE_S = 25.0, 100.0
MIB = 1 << 20

_FORM = ("--reportformat", "json", "--units", "b", "--nosuffix", "--options")
_DEVICES = "pv_name,vg_name,pv_size,pv_free,pv_allocatable,pv_missing"
_GROUPS = "vg_name,vg_size,vg_free,vg_missing_pv_count"
_VOLUMES = "vg_name,lv_name,lv_health_status"
_DEVICE = re.compile(r"/dev/[A-Za-z0-9/_.:+@-]+")
_GROUP = re.compile(r"[A-Za-z0-9+_.][A-Za-z0-9+_.-]{0,126}")


class PhysicalVolumeDriver(Protocol):
    """What volume groups of this node are made of; see ``PhysicalVolumes`` for the promises."""

    async def devices(self) -> tuple[PhysicalVolumeReport, ...]: ...

    async def groups(self) -> tuple[VolumeGroupReport, ...]: ...

    async def set_allocatable(self, device: str, *, allocatable: bool) -> None: ...

    async def forget_missing(self, group: str, broken: tuple[str, ...]) -> None: ...


class LvmPhysicalVolumes(PhysicalVolumeDriver):
    """Those of a real node; a look is one command, or two."""

    async def devices(self) -> tuple[PhysicalVolumeReport, ...]:
        return parse_devices(await _report("pvs", _DEVICES))

    async def groups(self) -> tuple[VolumeGroupReport, ...]:
        return parse_groups(await _report("vgs", _GROUPS), await _report("lvs", _VOLUMES))

    async def set_allocatable(self, device: str, *, allocatable: bool) -> None:
        found = find_device(await self.devices(), device)
        if found.allocatable is not allocatable:
            word = "y" if allocatable else "n"
            await _change("pvchange", "--allocatable", word, device)

    async def forget_missing(self, group: str, broken: tuple[str, ...]) -> None:
        if check_told(await self.groups(), group, broken):
            await _change("vgreduce", "--yes", "--removemissing", "--force", group)


def find_device(devices: tuple[PhysicalVolumeReport, ...], name: str) -> PhysicalVolumeReport:
    """Return a device that is there.

    Raises:
        NotFound: names those that are.
    """
    there = {each.name: each for each in devices if not each.missing}
    if name not in there or not _DEVICE.fullmatch(name):
        raise NotFound(
            f"LVM has no physical volume “{name}” on this node; it has "
            f"{', '.join(there) or 'none'}.",
            device=name,
        )
    return there[name]


def check_told(groups: tuple[VolumeGroupReport, ...], name: str, broken: tuple[str, ...]) -> bool:
    """Tell whether a group misses a device; see that nothing is lost that was not spoken of.

    Raises:
        NotFound: no such group.
        Conflict: names the volumes that would be lost besides.
    """
    found = next((each for each in groups if each.name == name), None)
    if found is None or not _GROUP.fullmatch(name):
        raise NotFound(no_group(name).message, group=name)
    if others := sorted(set(found.broken) - set(broken)):
        raise Conflict(
            f"More volumes of {name} are broken than before: {', '.join(others)}. Look again.",
            volumes=others,
        )
    return found.missing > 0


def parse_devices(text: bytes) -> tuple[PhysicalVolumeReport, ...]:
    """Read what ``pvs`` reports.

    Raises:
        NodeFailure: it is not as we know it.
    """
    found = (
        PhysicalVolumeReport(
            name=row["pv_name"],
            group=row["vg_name"],
            size=_mib(row["pv_size"]),
            free=_mib(row["pv_free"]),
            allocatable=bool(row["pv_allocatable"]),
            missing=bool(row["pv_missing"]),
        )
        for row in _rows(text, "pv")
    )
    return tuple(sorted(found, key=lambda each: (each.name, each.group)))


def parse_groups(groups: bytes, volumes: bytes) -> tuple[VolumeGroupReport, ...]:
    """Read what ``vgs`` and ``lvs`` report.

    Raises:
        NodeFailure: it is not as we know it.
    """
    broken: dict[str, list[str]] = {}
    for row in _rows(volumes, "lv"):
        if row["lv_health_status"] == "partial":
            broken.setdefault(row["vg_name"], []).append(row["lv_name"])
    found = (
        VolumeGroupReport(
            name=row["vg_name"],
            size=_mib(row["vg_size"]),
            free=_mib(row["vg_free"]),
            missing=int(row["vg_missing_pv_count"]),
            broken=tuple(sorted(broken.get(row["vg_name"], ()))),
        )
        for row in _rows(groups, "vg")
    )
    return tuple(sorted(found, key=lambda each: each.name))


def _rows(text: bytes, kind: str) -> list[dict[str, Any]]:
    try:
        reports = msgspec.json.decode(text)["report"]
        return [row for report in reports for row in report[kind]]
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        raise NodeFailure(
            "LVM reports its devices in a way that is not known here.",
            text=text[:200].decode(errors="replace"),
        ) from error


def _mib(size: str) -> MiB:
    return MiB(int(size) // MIB)


async def _report(command: str, fields: str) -> bytes:
    return (await execute("lvm", command, *_FORM, fields, timeout_s=LOOK_S)).stdout


async def _change(*command: str) -> None:
    await execute("lvm", *command, timeout_s=CHANGE_S)
