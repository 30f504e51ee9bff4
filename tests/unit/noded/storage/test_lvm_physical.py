"""What volume groups are made of: LVM's reports, and what is promised of changes."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from common.errors import Conflict, NodeFailure, NotFound
from common.execute import Finished
from common.model.backing import LvmBacking
from common.names import DiskId, InstanceId, MiB
from common.noderpc.physical_volumes import PhysicalVolumeReport, VolumeGroupReport
from noded.storage.lvm import physical
from noded.storage.lvm.fake import FakeVolumes
from noded.storage.lvm.physical import (
    LvmPhysicalVolumes,
    PhysicalVolumeDriver,
    parse_devices,
    parse_groups,
)
from noded.storage.lvm.physical_fake import FakePhysicalVolumes
from noded.storage.lvm.volumes import NewVolume, Volume

GIB = 1 << 30
DISK = DiskId("0e1b3c8a-1111-4222-8333-444455556666")
VOLUME = Volume(
    LvmBacking(group="vg", name=f"{DISK}.disk"), DISK,
    InstanceId("11111111-0000-4000-8000-000000000001"),
)  # fmt: skip


def report(kind: str, *rows: dict[str, Any]) -> bytes:
    return json.dumps({"report": [{kind: rows}]}).encode()


def device(name: str, group: str, *, allocatable: bool = True, missing: bool = False) -> Any:
    """Return a row as pvs of LVM2 2.03.16 tells it; see lvmreport(7)."""
    return {
        "pv_name": name, "vg_name": group, "pv_size": str(4 * GIB), "pv_free": str(GIB),
        "pv_allocatable": "allocatable" if allocatable else "",
        "pv_missing": "missing" if missing else "",
    }  # fmt: skip


class ScriptedLvm:
    """LVM on one group: answers looks, and does what changes ask for."""

    def __init__(self) -> None:
        self.devices = [device("/dev/sdb", "vg"), device("/dev/sdc", "vg")]
        self.broken: list[str] = []
        self.changes: list[tuple[str, ...]] = []

    def lose(self) -> None:
        self.devices[1] = device("[unknown]", "vg", missing=True)
        self.broken = [VOLUME.place.name]

    async def run(self, *argv: str, timeout_s: float) -> Finished:
        assert timeout_s > 0
        assert argv[0] == "lvm"
        return Finished(self._answer(argv[1:]), b"")

    def _answer(self, words: Sequence[str]) -> bytes:
        match words:
            case ("pvs", *_):
                return report("pv", *self.devices)
            case ("vgs", *_):
                missing = sum(bool(each["pv_missing"]) for each in self.devices)
                about = {"vg_size": str(8 * GIB), "vg_free": str(2 * GIB)}
                return report("vg", {"vg_name": "vg", "vg_missing_pv_count": str(missing), **about})
            case ("lvs", *_):
                rows = [
                    {"vg_name": "vg", "lv_name": "whole", "lv_health_status": ""},
                    *({"vg_name": "vg", "lv_name": name, "lv_health_status": "partial"}
                      for name in self.broken),
                ]  # fmt: skip
                return report("lv", *rows)
            case _:
                pass
        self.changes.append(tuple(words))
        match words:
            case ("pvchange", "--allocatable", word, name):
                self.devices = [
                    device(each["pv_name"], "vg", allocatable=word == "y")
                    if each["pv_name"] == name else each
                    for each in self.devices
                ]  # fmt: skip
            case ("vgreduce", "--yes", "--removemissing", "--force", "vg"):
                self.devices = [each for each in self.devices if not each["pv_missing"]]
                self.broken = []
            case _:
                raise AssertionError(words)
        return b""


class Rig:
    driver: PhysicalVolumeDriver
    device: str

    def lose(self) -> None:
        raise NotImplementedError


class FakeRig(Rig):
    def __init__(self, _: pytest.MonkeyPatch) -> None:
        self.volumes = FakeVolumes("vg")
        asyncio.run(self.volumes.ensure_present([NewVolume(VOLUME, MiB(64))]))
        self.driver: FakePhysicalVolumes = FakePhysicalVolumes(self.volumes)
        self.device = "/dev/vg"

    def lose(self) -> None:
        self.driver.lose("/dev/vg")


class LvmRig(Rig):
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lvm = ScriptedLvm()
        monkeypatch.setattr(physical, "execute", self.lvm.run)
        self.driver = LvmPhysicalVolumes()
        self.device = "/dev/sdb"

    def lose(self) -> None:
        self.lvm.lose()


@pytest.fixture(params=[FakeRig, LvmRig], ids=["fake", "commands"])
def rig(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Rig:
    made: Rig = request.param(monkeypatch)
    return made


def is_allocatable(rig: Rig) -> bool:
    found = asyncio.run(rig.driver.devices())
    return next(each.allocatable for each in found if each.name == rig.device)


def test_a_device_takes_no_new_volumes_until_it_is_told_to(rig: Rig) -> None:
    assert is_allocatable(rig)
    for wanted in (False, False, True, True):
        asyncio.run(rig.driver.set_allocatable(rig.device, allocatable=wanted))
        assert is_allocatable(rig) is wanted


@pytest.mark.parametrize("name", ["/dev/sdz", "sdb", "--all", "", "[unknown]"])
def test_a_device_that_is_not_there_is_not_changed(rig: Rig, name: str) -> None:
    rig.lose()
    with pytest.raises(NotFound, match="has no physical volume"):
        asyncio.run(rig.driver.set_allocatable(name, allocatable=False))


def test_a_missing_device_goes_with_the_volumes_that_were_spoken_of(rig: Rig) -> None:
    rig.lose()
    (group,) = asyncio.run(rig.driver.groups())
    assert (group.name, group.missing, group.broken) == ("vg", 1, (VOLUME.place.name,))
    with pytest.raises(Conflict, match=f"More volumes of vg are broken than before: {DISK}.disk"):
        asyncio.run(rig.driver.forget_missing("vg", ()))
    for _ in range(2):
        asyncio.run(rig.driver.forget_missing("vg", group.broken))
    (group,) = asyncio.run(rig.driver.groups())
    assert (group.missing, group.broken) == (0, ())
    assert not any(each.missing for each in asyncio.run(rig.driver.devices()))


def test_a_group_that_misses_nothing_stays_as_it_is(rig: Rig) -> None:
    before = asyncio.run(rig.driver.groups())
    asyncio.run(rig.driver.forget_missing("vg", ()))
    assert asyncio.run(rig.driver.groups()) == before
    for name in ("other", "--force", ""):
        with pytest.raises(NotFound, match="does not exist on this node"):
            asyncio.run(rig.driver.forget_missing(name, ()))


def test_lvm_is_not_asked_to_change_what_is_as_it_is_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = LvmRig(monkeypatch)
    asyncio.run(rig.driver.set_allocatable("/dev/sdb", allocatable=True))
    asyncio.run(rig.driver.forget_missing("vg", ()))
    assert rig.lvm.changes == []


def test_devices_are_read_from_what_pvs_reports() -> None:
    text = report(
        "pv", device("/dev/sdc", "", allocatable=False), device("[unknown]", "vg", missing=True)
    )
    size, free = MiB(4096), MiB(1024)
    assert parse_devices(text) == (
        PhysicalVolumeReport(
            name="/dev/sdc", group="", size=size, free=free, allocatable=False, missing=False
        ),
        PhysicalVolumeReport(
            name="[unknown]", group="vg", size=size, free=free, allocatable=True, missing=True
        ),
    )
    assert parse_devices(report("pv")) == ()


def test_groups_are_read_with_the_volumes_that_lack_a_device() -> None:
    about = {"vg_size": str(8 * GIB), "vg_free": "0", "vg_missing_pv_count": "1"}
    volumes = report(
        "lv",
        {"vg_name": "b", "lv_name": "y", "lv_health_status": "partial"},
        {"vg_name": "b", "lv_name": "x", "lv_health_status": "partial"},
        {"vg_name": "a", "lv_name": "x", "lv_health_status": ""},
    )
    groups = report("vg", {"vg_name": "b", **about}, {"vg_name": "a", **about})
    told = parse_groups(groups, volumes)
    assert told[1] == VolumeGroupReport(
        name="b", size=MiB(8192), free=MiB(0), missing=1, broken=("x", "y")
    )
    assert told[0].broken == ()


@pytest.mark.parametrize("text", [b"", b"[]", b'{"report":[{}]}', b"  WARNING: no"])
def test_what_lvm_never_says_is_no_report(text: bytes) -> None:
    with pytest.raises(NodeFailure, match="not known here"):
        parse_devices(text)
