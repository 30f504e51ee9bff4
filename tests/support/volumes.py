"""Rigs for disks that are logical volumes, faked and real."""

import asyncio
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from common.model.backing import LvmBacking
from common.model.pool import Pool
from common.model.pool_kind import PoolKind
from common.names import DiskId, InstanceId, MiB
from common.noderpc.disks import DiskSpec
from noded.storage.lvm.fake import FakeVolumes
from noded.storage.lvm.linux import LinuxVolumes
from noded.storage.lvm.volumes import Volumes
from noded.storage.plain import PlainStorage

GROUP = os.environ.get("GANTRY_TEST_GROUP", "")  # a volume group that tests may do anything with
AWAY = "gantry-away"
WEB1 = InstanceId("11111111-0000-4000-8000-000000000001")
ANOTHER = DiskId("dddddddd-0000-4000-8000-0000000000ff")


class OfVolumes:
    """Disks in a volume group; their names follow from the disks alone."""

    group: str
    volumes: Volumes

    @property
    def pool(self) -> Pool:
        return Pool(kind=PoolKind.VOLUME_GROUP, name=self.group)

    @property
    def storage(self) -> PlainStorage:
        return PlainStorage(self.volumes)

    def disk(self, name: str, *, id: DiskId, size: int) -> DiskSpec:
        backing = LvmBacking(group=self.group, name=f"{id}.disk")
        return DiskSpec(id=id, instance=WEB1, size=MiB(size), backing=backing)


class FakePlainRig(OfVolumes):
    def __init__(self, root: Path) -> None:
        self.group = "xenvg"
        self.fake = self.volumes = FakeVolumes(self.group)

    def unmount(self) -> None:
        del self.fake.groups[self.group]

    def use(self, path: str) -> None:
        self.fake.held.add(path)

    def occupy(self, disk: DiskSpec) -> Callable[[], bool]:
        asyncio.run(self.storage.ensure_present(disk))
        volumes, name = self.fake.groups[self.group].volumes, disk.backing.paths[0].split("/")[1]
        volumes[name] = replace(volumes[name], disk=ANOTHER)
        return lambda: name in volumes


class LvmRig(OfVolumes):
    """Volumes of a group in which there is nothing else."""

    def __init__(self, root: Path) -> None:
        if not GROUP:
            pytest.skip("GANTRY_TEST_GROUP names no volume group for tests")
        self.group, self.volumes = GROUP, LinuxVolumes()
        self._opened: list[int] = []
        self._is_away = False

    def unmount(self) -> None:
        lvm("vgrename", GROUP, AWAY)
        self._is_away = True

    def use(self, path: str) -> None:
        lvm("lvchange", "-ay", "-K", path)
        self._opened.append(os.open(f"/dev/{path}", os.O_RDONLY))

    def occupy(self, disk: DiskSpec) -> Callable[[], bool]:
        asyncio.run(self.storage.ensure_present(disk))
        path = disk.backing.paths[0]
        tags = ("--deltag", f"gantry.disk.{disk.id}", "--addtag", f"gantry.disk.{ANOTHER}")
        lvm("lvchange", *tags, path)
        return lambda: path.split("/")[1] in lvm("lvs", "--noheadings", "-o", "lv_name", GROUP)

    def close(self) -> None:
        """Leave nothing behind."""
        for descriptor in self._opened:
            os.close(descriptor)
        if self._is_away:
            lvm("vgrename", AWAY, GROUP)
        lvm("lvremove", "--yes", GROUP)


def lvm(*argv: str) -> str:
    """Run LVM as an operator does."""
    done = subprocess.run(argv, capture_output=True, text=True, check=True)  # noqa: TID251 -- no loop
    return done.stdout
