"""A mirrored disk with both ends on this node: real, on small volumes.

DRBD does not care what its peer calls a device, nor where it is. So both ends can be of one node,
if they have other names, numbers and addresses.
"""

import asyncio
import os
import socket
import subprocess
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace as copy
from pathlib import Path
from typing import Any

import pytest

from common.names import MiB, NodeId
from common.noderpc.disks import DiskSpec
from noded.storage.drbd.linux import LinuxDrbd
from noded.storage.drbd.module import DIGEST
from noded.storage.drbd.versions import read_version
from noded.storage.lvm.linux import LinuxVolumes
from noded.storage.lvm.volumes import NewVolume, Volume
from tests.support.pairs import SIZE, Side, side_of, specs

GROUP = os.environ.get("GANTRY_TEST_GROUP", "")  # that tests may do anything with


class SmallVolumes(LinuxVolumes):
    """Volumes none of which is larger than the data of tests: zeros take their time.

    ``grown`` are those that have been made larger.
    """

    def __init__(self) -> None:
        super().__init__()
        self.grown: set[Volume] = set()

    async def ensure_active(self, wanted: Sequence[NewVolume]) -> tuple[str, ...]:
        return await super().ensure_active([copy(new, size=min(new.size, SIZE)) for new in wanted])

    async def grow(self, volume: Volume, size: MiB, *, alone: bool = False) -> None:
        self.grown.add(volume)
        await super().grow(volume, size, alone=alone)


class DrbdPair:
    """DRBD's module, both ends on this node. They talk over the loopback device.

    Volumes are kept from one story to the next, as making them takes longer than most stories; not
    those that have grown.
    """

    def __init__(self) -> None:
        if not GROUP or not Path("/proc/drbd").exists():
            pytest.skip("GANTRY_TEST_GROUP names no volume group for tests, or there is no DRBD")
        one, other = specs(GROUP, ("127.0.0.1", "127.0.0.2"), (100, 101), "ab")
        self._volumes = SmallVolumes()
        self.one, self.other = self._side(NodeId("a"), one), self._side(NodeId("b"), other)
        self.proves = has_hmac()
        self._opened: list[int] = []
        self._is_cut = False
        _, language = read_version(Path("/sys/module/drbd/version").read_text())
        assert language is not None
        self._language = language

    def _side(self, node: NodeId, disk: DiskSpec) -> Side:
        return side_of(node, self._volumes, LinuxDrbd(), disk)

    def run(self, story: Coroutine[Any, Any, None]) -> None:
        minors = {
            f"{GROUP}/{self.one.disk.id}.meta": 100,
            f"{GROUP}/{self.other.disk.id}.meta": 101,
        }
        run("lvchange", "--activate", "y", "--ignoreactivationskip", *minors)
        for meta, minor in minors.items():
            _empty(Path("/dev", meta))  # whatever is there would be converted
            run(*self._language.create_meta(minor, f"/dev/{meta}"))
        try:
            asyncio.run(story)
        finally:
            self._clean()

    @staticmethod
    def remove() -> None:
        """Leave no volume behind."""
        if GROUP:
            run("lvremove", "--yes", "--quiet", GROUP)

    def _clean(self) -> None:
        for descriptor in self._opened:
            os.close(descriptor)
        if self._is_cut:
            run("ip", "link", "set", "lo", "up")
        for name in (self.one.resource, self.other.resource, "precious"):
            run("drbdsetup", "down", name)
        disks = (self.one.disk.id, self.other.disk.id)
        aside = [f"{GROUP}/{disk}.{name}.aside" for disk in disks for name in ("data", "meta")]
        grown = [volume.name for volume in self._volumes.grown]
        run("lvremove", "--yes", "--quiet", *aside, *grown)  # those that are there

    async def write(self, side: Side) -> object:
        written = os.urandom(1 << 20)
        descriptor = side.storage.open(side.disk)
        try:
            os.pwrite(descriptor, written, 1 << 20)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return written

    async def has(self, side: Side, written: object) -> bool:
        descriptor = side.storage.open(side.disk)
        try:
            return os.pread(descriptor, 1 << 20, 1 << 20) == written
        finally:
            os.close(descriptor)

    async def hold_open(self, side: Side) -> Callable[[], Awaitable[None]]:
        self._opened.append(descriptor := side.storage.open(side.disk))

        async def end() -> None:
            os.close(descriptor)
            self._opened.remove(descriptor)

        return end

    async def cut(self) -> None:
        self._is_cut = True
        run("ip", "link", "set", "lo", "down")

    async def heal(self) -> None:
        run("ip", "link", "set", "lo", "up")
        self._is_cut = False


def _empty(device: Path) -> None:
    """Write zeros to the beginning of a volume, if it is there."""
    if device.exists():
        with device.open("r+b") as volume:
            volume.write(bytes(1 << 20))


def has_hmac() -> bool:
    """Tell whether this kernel can make the digests that DRBD asks for."""
    try:
        with socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET) as algorithm:
            algorithm.bind(("hash", f"hmac({DIGEST})"))
    except OSError:
        return False
    return True


def run(*argv: str) -> None:
    """Run a program as an operator does, whether it succeeds or not."""
    subprocess.run(argv, capture_output=True, check=False)  # noqa: TID251 -- no loop is kept waiting
