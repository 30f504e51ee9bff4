"""Rigs for volumes that share no physical volume with others: a group of three, faked and real."""

import itertools
from pathlib import Path

import pytest

from common.names import MiB
from noded.storage.lvm.fake import FakeVolumes
from noded.storage.lvm.fake_group import FakeGroup
from noded.storage.lvm.linux import LinuxVolumes
from tests.support.volumes import GROUP, OfVolumes, lvm

COUNT = 3
SIZE = MiB(28)  # of each, what LVM notes about it left out: seven extents


class FakeSpindlesRig(OfVolumes):
    def __init__(self, root: Path) -> None:
        self.group = "xenvg"
        volumes = FakeVolumes(self.group)
        volumes.groups[self.group] = FakeGroup(capacity=MiB(COUNT * SIZE), spindles=COUNT)
        self.volumes = volumes

    def close(self) -> None:
        pass


class LvmSpindlesRig(OfVolumes):
    """A group of its own, on files."""

    _names = (f"gantry-apart{number}" for number in itertools.count())

    def __init__(self, root: Path) -> None:
        if not GROUP:
            pytest.skip("GANTRY_TEST_GROUP names no volume group, so LVM is not to be touched")
        self.group, self.volumes = next(self._names), LinuxVolumes()
        self._devices: list[str] = []
        for number in range(COUNT):
            path = root / f"spindle{number}"
            with path.open("wb") as file:
                file.truncate((SIZE + 4) << 20)
            self._devices.append(lvm("losetup", "--find", "--show", str(path)).strip())
        lvm("vgcreate", "--yes", "--quiet", self.group, *self._devices)

    def close(self) -> None:
        """Leave nothing behind."""
        lvm("vgremove", "--yes", "--force", self.group)
        for device in self._devices:
            lvm("pvremove", "--yes", device)
            lvm("losetup", "--detach", device)
