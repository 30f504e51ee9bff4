"""LVM as a program that reports what a test has it report, and says what it was told."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TypeVar

from common.execute import CommandFailed, Finished
from common.model.backing import LvmBacking
from common.names import DiskId, InstanceId, MiB
from noded.storage.lvm.linux import LinuxVolumes
from noded.storage.lvm.volumes import NewSnapshot, NewVolume, Volume
from tests.support.clock import simulate

T = TypeVar("T")
WEB1 = InstanceId("11111111-0000-4000-8000-000000000001")


def disk(number: int) -> DiskId:
    return DiskId(f"dddddddd-0000-4000-8000-{number:012}")


def volume(number: int = 0, group: str = "xenvg") -> Volume:
    place = LvmBacking(group=group, name=f"{disk(number)}.disk")
    return Volume(place, disk(number), WEB1)


def row(of: Volume, *, tags: str | None = None, size: int = 8, **state: str) -> dict[str, str]:
    ours = f"gantry,gantry.disk.{of.disk},gantry.instance.{WEB1}"
    return {
        "lv_name": of.place.name, "lv_uuid": "u", "lv_size": str(size << 20),
        "lv_tags": ours if tags is None else tags, "lv_layout": "linear", "lv_active": "",
        "lv_device_open": "", "lv_health_status": "", "origin": "", "pool_lv": "",
        "data_percent": "", "metadata_percent": "",
    } | state  # fmt: skip


class Lvm:
    """Stands in for the program: reports what it is made to, says what it was told."""

    def __init__(self, *volumes: dict[str, str]) -> None:
        self.volumes = list(volumes)
        self.segments: list[dict[str, str]] = []  # what they are on
        self.told: list[str] = []
        self.refuses: Callable[[str], str | None] = lambda _: None
        self.makes = True
        self.takes_s = 0.0

    @property
    def changes(self) -> list[str]:
        return [line for line in self.told if not line.startswith("fullreport")]

    async def execute(self, *argv: str, timeout_s: float, stdin: bytes | None = None) -> Finished:
        assert argv[0] == "lvm"
        assert timeout_s
        if stdin is not None:
            self.told.append("|".join(stdin.decode().splitlines()))
            names = [line.split("--name ")[1].split()[0] for line in stdin.decode().splitlines()]
            made = names if self.makes else names[:-1]
            said = "".join(f'  Logical volume "{name}" created.\n' for name in made)
            return Finished(said.encode(), b"  no luck" if not self.makes else b"")
        line = " ".join(argv[1:])
        self.told.append(line)
        if argv[1] == "lvconvert":
            await asyncio.sleep(self.takes_s)
        if (why := self.refuses(line)) is not None:
            raise CommandFailed("LVM refused.", stderr=why)
        return Finished(self._report() if argv[1] == "fullreport" else b"", b"")

    def _report(self) -> bytes:
        size = str(1 << 30)
        device = {"pv_name": "/dev/sda", "pv_uuid": "p", "pv_size": size, "pv_free": size,
                  "pv_allocatable": "allocatable", "pv_missing": ""}  # fmt: skip
        group = {"vg_name": "xenvg", "vg_size": size, "vg_free": size,
                 "vg_extent_size": str(4 << 20)}  # fmt: skip
        report = {"vg": [group], "pv": [device], "lv": self.volumes,
                  "seg": self.segments, "pvseg": []}  # fmt: skip
        return json.dumps({"report": [report]}).encode()


def snapshot(number: int, *, thin_pool: str = "") -> NewSnapshot:
    """Return an order for a snapshot of a disk, which gets a disk's number of its own."""
    place = LvmBacking(group="xenvg", name=f"{disk(number + 5)}.snapshot", thin_pool=thin_pool)
    kept = Volume(place, disk(number + 5), WEB1)
    return NewSnapshot(volume(number), NewVolume(kept, MiB(8)))


def run(work: Callable[[LinuxVolumes], Awaitable[T]]) -> T:
    async def main() -> T:
        return await work(LinuxVolumes())

    return simulate(main())
