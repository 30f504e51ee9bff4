"""Runs of scripts of operating systems: by real processes, and by the fake."""

import asyncio
import fcntl
import os
import struct
from collections.abc import Awaitable
from pathlib import Path
from typing import Protocol

from common.names import InstanceName, NodeName
from common.noderpc.disks import Access, DiskSpec
from common.noderpc.operating_systems import Script, ScriptOrder, ScriptReport, Subject
from noded.operating_systems.driver import Places, ProcessOsDriver
from noded.operating_systems.fake import FakeOsDriver
from noded.operating_systems.interface import OsDriver
from noded.storage.directories import Directories
from noded.storage.fake import FakeFiles, FakeStorage
from noded.storage.file import FileStorage
from noded.storage.interface import Storage
from tests.support.clock import simulate
from tests.support.disks import WEB1, file_disk, only_files
from tests.support.https_node import run as run_really
from tests.support.os_definition import write_definition

DISK = "dddddddd-0000-4000-8000-00000000000a"
RUN = "cluster-12-0-install"


class Rig(Protocol):
    """A node with a disk, the operating system “debian”, and ways to break what goes on."""

    driver: OsDriver
    storage: Storage
    disk: DiskSpec

    def has_written(self) -> bool: ...
    def times(self) -> int: ...
    def use(self) -> None: ...
    def fail(self, script: Script) -> None: ...
    def restart_noded(self) -> None: ...
    def lose_power(self) -> None: ...


class FakeRig:
    def __init__(self) -> None:
        directories = Directories(local="/srv/local")
        self.files = FakeFiles()
        self.storage: Storage = (
            fake := FakeStorage(lambda: directories, local=self.files, shared=FakeFiles())
        )
        self.fake, self.users = fake, set[str]()
        self.driver: OsDriver = FakeOsDriver(
            only_files(fake), fake, is_in_use=lambda disk: disk in self.users
        )
        self.disk = file_disk(DISK, "/srv/local/disk")

    def has_written(self) -> bool:
        assert isinstance(self.driver, FakeOsDriver)
        self.driver.settle()
        return self.fake.read(self.disk) == "debian+stable for web1"

    def times(self) -> int:
        assert isinstance(self.driver, FakeOsDriver)
        return len(self.driver.known)

    def use(self) -> None:
        self.users.add(DISK)

    def fail(self, script: Script) -> None:
        assert isinstance(self.driver, FakeOsDriver)
        self.driver.failing.add(script)

    def restart_noded(self) -> None:
        pass

    def lose_power(self) -> None:
        assert isinstance(self.driver, FakeOsDriver)
        self.driver.power_off()


class ProcessRig:
    def __init__(self, root: Path) -> None:
        self.root, self.opened = root, list[int]()
        (root / "disks").mkdir()
        self.definitions = root / "os"
        write_definition(self.definitions / "debian")
        directories = Directories(local=str(root / "disks"))
        self.storage: Storage = FileStorage(lambda: directories)
        self.disk = file_disk(DISK, f"{root}/disks/disk")
        self.driver: OsDriver = self.started_anew()

    def started_anew(self) -> ProcessOsDriver:
        places = Places(
            search_path=(self.root / "none", self.definitions),
            runs=self.root / "run", logs=self.root / "logs",
        )  # fmt: skip
        return ProcessOsDriver(places, self.storage.open)

    @property
    def path(self) -> Path:
        return self.root / "disks/disk"

    def has_written(self) -> bool:
        return self.path.read_bytes().startswith(b"debian+stable for web1")

    def times(self) -> int:
        """Tell how often a script was run: each time it gets a log."""
        return len(list((self.root / "logs").iterdir()))

    def use(self) -> None:
        """Have the disk open as QEMU has."""
        self.opened.append(descriptor := os.open(self.path, os.O_RDWR))
        kind = struct.pack("hhqqi0q", fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, kind)

    def fail(self, script: Script) -> None:
        write_definition(self.definitions / "debian", fails=script)

    def restart_noded(self) -> None:
        self.driver = self.started_anew()

    def lose_power(self) -> None:
        asyncio.run(self.driver.end(RUN))


def order(rig: Rig, script: Script = Script.CREATE, *, os: str = "debian+stable") -> ScriptOrder:
    return order_for(rig.disk, script, os=os)


def order_for(disk: DiskSpec, script: Script, *, os: str) -> ScriptOrder:
    return ScriptOrder(
        script=script,
        subject=Subject(
            id=WEB1, name=InstanceName("web1"), os=os, primary_node=NodeName("beta"),
            ctime=1.5, mtime=2.5, hypervisor="kvm", disks=(disk,),
        ),
    )  # fmt: skip


def in_time(rig: Rig, work: Awaitable[object]) -> object:
    """Run a coroutine: of the fake in virtual time."""
    return simulate(work) if isinstance(rig, FakeRig) else run_really(work)  # type: ignore[arg-type]


async def attached(rig: Rig) -> None:
    await rig.storage.ensure_present(rig.disk)
    await rig.storage.attach(rig.disk, Access.SOLE)


async def begun(rig: Rig) -> None:
    """Begin a script, and wait until it has said something."""
    await rig.driver.begin(RUN, order(rig))
    while True:
        if (await rig.driver.look(RUN, 0)).text:
            return
        await asyncio.sleep(0.02)


async def ended(driver: OsDriver, run: str = RUN) -> tuple[str, ScriptReport]:
    """Follow a script to its end, and return all that it has said."""
    said, offset = "", 0
    while True:
        report = await driver.look(run, offset)
        said, offset = said + report.text, report.offset
        if report.has_ended:
            return said, report
        await asyncio.sleep(0.02)
