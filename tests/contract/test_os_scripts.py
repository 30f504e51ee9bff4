"""What scripts of operating systems promise, kept by real processes and by the fake."""

import asyncio
import fcntl
import os
import signal
import struct
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Protocol

import pytest
from msgspec.structs import replace

from common.errors import InvalidRequest, NodeFailure, NotFound
from common.model.disk import Qcow2Backing
from common.names import InstanceName, NodeName
from common.noderpc.disks import Access, DiskSpec
from common.noderpc.operating_systems import Script, ScriptOrder, ScriptReport, Subject
from noded.copies.device import claim
from noded.operating_systems.driver import Places, ProcessOsDriver
from noded.operating_systems.fake import FakeOsDriver
from noded.operating_systems.interface import OsDriver
from noded.operating_systems.leftovers import layers_on
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


@pytest.fixture(params=["fake", "process"])
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Rig:
    if request.param == "fake":
        return FakeRig()
    if os.geteuid() != 0:
        pytest.skip("scripts get names of processes of their own, for which it takes root")
    return ProcessRig(tmp_path)


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


def test_a_script_writes_to_its_disks_and_what_it_says_is_told(rig: Rig) -> None:
    async def story() -> None:
        await attached(rig)
        await rig.driver.begin(RUN, order(rig))
        said, report = await ended(rig.driver)
        assert "create of debian+stable" in said
        assert report.problem == ""
        assert report.log.endswith(".log")
        await rig.driver.end(RUN)

    in_time(rig, story())
    assert rig.has_written()


def test_a_script_that_is_begun_again_is_not_run_again(rig: Rig) -> None:
    async def story() -> str:
        await attached(rig)
        for _ in range(2):
            await rig.driver.begin(RUN, order(rig))
        said, _ = await ended(rig.driver)
        await rig.driver.begin(RUN, order(rig))
        again, report = await ended(rig.driver)
        assert report.problem == ""
        assert again == said
        return said

    said = in_time(rig, story())
    assert str(said).count("create of debian+stable") == 1
    assert rig.times() == 1


def test_a_script_goes_on_while_noded_is_started_anew(rig: Rig) -> None:
    async def story() -> None:
        await attached(rig)
        await begun(rig)
        rig.restart_noded()
        said, report = await ended(rig.driver)
        assert "create of debian+stable" in said
        assert report.problem == ""

    in_time(rig, story())
    assert rig.has_written()


def test_a_script_that_fails_is_told_with_its_last_words(rig: Rig) -> None:
    rig.fail(Script.CREATE)

    async def story() -> ScriptReport:
        await attached(rig)
        await rig.driver.begin(RUN, order(rig))
        return (await ended(rig.driver))[1]

    report = in_time(rig, story())
    assert isinstance(report, ScriptReport)
    assert report.problem.startswith(
        "The script create of debian+stable for web1 ended with status 1. It said last: "
    )
    assert report.problem.endswith("no mirror")


def test_a_script_that_is_ended_leaves_nothing_running_and_is_forgotten(rig: Rig) -> None:
    async def story() -> None:
        await attached(rig)
        await rig.driver.begin(RUN, order(rig))
        await rig.driver.end(RUN)
        await rig.driver.end(RUN)
        with pytest.raises(NotFound, match="knows of no such script"):
            await rig.driver.look(RUN, 0)
        await rig.driver.begin(RUN, order(rig))  # the disk is free again
        await rig.driver.end(RUN)

    in_time(rig, story())


def test_a_run_that_has_ended_is_forgotten_with_the_next_for_its_instance(rig: Rig) -> None:
    async def story() -> None:
        await attached(rig)
        await rig.driver.begin(RUN, order(rig))
        await ended(rig.driver)
        await rig.driver.begin("another-run", order(rig))
        await ended(rig.driver, "another-run")
        with pytest.raises(NotFound):
            await rig.driver.look(RUN, 0)

    in_time(rig, story())


def test_a_disk_that_a_guest_uses_is_not_written(rig: Rig) -> None:
    async def story() -> None:
        await attached(rig)
        rig.use()
        with pytest.raises(NodeFailure, match="is in use by a guest"):
            await rig.driver.begin(RUN, order(rig))

    in_time(rig, story())
    assert not rig.has_written()


def test_while_a_script_works_nobody_else_gets_its_disk(rig: Rig) -> None:
    async def story() -> None:
        await attached(rig)
        await rig.driver.begin(RUN, order(rig))
        with pytest.raises(NodeFailure, match="is in use by"):
            await rig.driver.begin("another-run", order(rig))
        await rig.driver.end(RUN)

    in_time(rig, story())


def with_image(wrong: ScriptOrder) -> ScriptOrder:
    """Return the same order, its disk being in QEMU's format."""
    backing = Qcow2Backing(path=f"/srv/{DISK}.qcow2", shared=False)
    disk = replace(wrong.subject.disks[0], backing=backing)
    return replace(wrong, subject=replace(wrong.subject, disks=(disk,)))


def test_what_a_definition_does_not_have_is_refused(rig: Rig) -> None:
    refused: tuple[tuple[ScriptOrder, type[Exception], str], ...] = (
        (order(rig, os="plan9"), NodeFailure, "no operating system “plan9”"),
        (order(rig, os="debian"), InvalidRequest, r"say which: debian\+stable, debian\+testing"),
        (order(rig, os="debian+sarge"), InvalidRequest, "declares no variant “sarge”"),
        (order(rig, os="../debian+stable"), InvalidRequest, "is no name of an operating system"),
        (order(rig, os="debian+../../tmp/x"), InvalidRequest, "is no name of an operating"),
        (replace(order(rig), parameters={"speed": "1"}), InvalidRequest, "no parameter “speed”"),
        (replace(order(rig), parameters={"A=B\n": "1"}), InvalidRequest, "no name of a parameter"),
        (with_image(order(rig)), NodeFailure, "take a disk byte for byte"),
    )

    async def story() -> None:
        await attached(rig)
        for wrong, kind, match in refused:
            with pytest.raises(kind, match=match):
                await rig.driver.check(wrong)
            with pytest.raises(kind, match=match):
                await rig.driver.begin(RUN, wrong)
        await rig.driver.check(replace(order(rig, os="debian+sarge"), may_be_unknown=True))

    in_time(rig, story())


def test_definitions_are_told_with_variants_and_parameters(rig: Rig) -> None:
    async def story() -> None:
        found = {each.name: each for each in await rig.driver.definitions()}["debian"]
        assert found.variants == ("stable", "testing")
        assert dict(found.parameters)["mirror"] == "where packages are"
        assert found.problem == ""
        assert Script.RENAME in found.scripts

    in_time(rig, story())


# Only of real processes


@pytest.fixture
def real(tmp_path: Path) -> ProcessRig:
    if os.geteuid() != 0:
        pytest.skip("scripts get names of processes of their own, for which it takes root")
    return ProcessRig(tmp_path)


def script_of(real: ProcessRig, text: str, script: str = "create") -> None:
    write_definition(real.definitions / "debian")
    (real.definitions / "debian" / script).write_text(f"#!/bin/bash\n{text}\n")


def after_run(real: ProcessRig, what: ScriptOrder | None = None) -> tuple[str, ScriptReport]:
    async def story() -> tuple[str, ScriptReport]:
        await attached(real)
        await real.driver.begin(RUN, what or order(real))
        return await ended(real.driver)

    return run_really(story())


def test_the_environment_is_what_it_is_told_and_nothing_else(real: ProcessRig) -> None:
    script_of(real, "env | sort")
    said, _ = after_run(real)
    names = {line.partition("=")[0] for line in said.splitlines()}
    of_bash = {"PWD", "SHLVL", "_", "OLDPWD"}
    assert names - of_bash == {
        "OS_API_VERSION", "OS_NAME", "OS_VARIANT", "DEBUG_LEVEL", "PATH", "INSTANCE_NAME",
        "INSTANCE_OS", "INSTANCE_UUID", "INSTANCE_CTIME", "INSTANCE_MTIME",
        "INSTANCE_PRIMARY_NODE", "INSTANCE_SECONDARY_NODES", "HYPERVISOR", "INSTANCE_HYPERVISOR",
        "DISK_COUNT", "DISK_0_ACCESS", "DISK_0_PATH", "DISK_0_UUID", "DISK_0_SIZE",
        "DISK_0_FRONTEND_TYPE", "DISK_0_BACKEND_TYPE", "NIC_COUNT",
    }  # fmt: skip
    assert f"DISK_0_PATH={real.path}" in said.splitlines()


def test_what_a_script_has_mounted_and_started_ends_with_it(real: ProcessRig) -> None:
    there = real.root / "mounted"
    there.mkdir()
    script_of(
        real, f"mount -t tmpfs none {there} && touch {there}/file && setsid sleep 1000 & sleep 0.2"
    )
    _, report = after_run(real)
    assert report.problem == ""
    assert not any(there.iterdir())
    assert not _running("sleep 1000")


def test_a_script_that_is_told_to_end_clears_up(real: ProcessRig) -> None:
    script_of(
        real,
        f"trap 'echo clear > {real.root}/cleared' EXIT\necho ready\nwhile :; do sleep 0.1; done",
    )

    async def story() -> None:
        await attached(real)
        await begun(real)
        real.restart_noded()
        await real.driver.end(RUN)

    run_really(story())
    assert (real.root / "cleared").read_text() == "clear\n"
    claim(descriptor := os.open(real.path, os.O_RDWR), "disk", to_write=True)
    os.close(descriptor)


def test_devices_that_a_script_has_left_on_its_disk_are_taken_away(real: ProcessRig) -> None:
    script_of(real, "losetup --show -f $DISK_0_PATH\necho ready\nwhile :; do sleep 0.1; done")

    async def story() -> tuple[str, ...]:
        await attached(real)
        await begun(real)
        while "ready" not in (await real.driver.look(RUN, 0)).text:
            pass
        path = str(real.path)
        there = layers_on([path])
        await real.driver.end(RUN)
        assert layers_on([path]) == ()
        return there

    (loop,) = run_really(story())
    assert loop.startswith("/dev/loop")


def test_a_script_ends_with_the_process_that_runs_it(real: ProcessRig) -> None:
    script_of(real, "trap '' TERM\necho ready\nsleep 1234")

    async def story() -> ScriptReport:
        await attached(real)
        await begun(real)
        assert isinstance(real.driver, ProcessOsDriver)
        found = real.driver._home(RUN).process()
        assert found
        with found:
            found.signal(signal.SIGKILL)
        return (await ended(real.driver))[1]

    assert run_really(story()).problem == "The script create of debian+stable for web1 was killed."
    deadline = time.monotonic() + 20
    while _running("sleep 1234"):  # the kernel takes it down
        assert time.monotonic() < deadline


def test_confidential_values_are_in_no_output_and_no_log(real: ProcessRig) -> None:
    script_of(real, 'set -x\necho "password is $OSP_ROOT_PASSWORD"')
    what = replace(
        order(real), parameters={"root_password": "open sesame"}, confidential=("root_password",)
    )
    said, report = after_run(real, what)
    assert "password is ********" in said
    assert "sesame" not in said + Path(report.log).read_text()
    left = [path for path in real.root.rglob("*") if path.is_file() and path != real.path]
    assert not [path for path in left if b"sesame" in path.read_bytes()]


def test_more_output_than_fits_in_one_answer_is_told_in_whole(real: ProcessRig) -> None:
    script_of(real, "seq 1 20000")
    said, _ = after_run(real)
    assert said.splitlines() == [str(number) for number in range(1, 20001)]


def test_definitions_that_others_can_change_or_that_are_incomplete_say_so(
    real: ProcessRig,
) -> None:
    for name in ("loose", "bare", "half", "future"):
        write_definition(real.definitions / name)
    (real.definitions / "loose").chmod(0o777)
    (real.definitions / "bare" / "create").unlink()
    (real.definitions / "half" / "import").unlink()
    (real.definitions / "future" / "ganeti_api_version").write_text("40\n")
    found = {each.name: each.problem for each in run_really(real.driver.definitions())}
    assert found["debian"] == ""
    assert "writable by nobody else" in found["loose"]
    assert "has no script “create”" in found["bare"]
    assert "it needs both or neither" in found["half"]
    assert "is for the versions 40" in found["future"]


def _running(words: str) -> bool:
    wanted = words.encode().replace(b" ", b"\0") + b"\0"
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and (entry / "cmdline").read_bytes() == wanted:
                return True
        except OSError:
            continue
    return False
