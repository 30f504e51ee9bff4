"""Debian's own definitions of operating systems, run as they are.

The packages ganeti-os-noop and ganeti-instance-debootstrap are there by ``deploy/setup --test``.
"""

import asyncio
import os
import shutil
import sys
from pathlib import Path

import pytest

from common.noderpc.disks import Access
from common.noderpc.operating_systems import Script, ScriptReport
from noded.operating_systems.driver import Places, ProcessOsDriver
from noded.storage.directories import Directories
from noded.storage.file import FileStorage
from noded.system.execute import execute
from tests.support.disks import file_disk
from tests.support.https_node import run
from tests.support.script_rigs import DISK, RUN, ended, order_for

DEFINITIONS = Path("/usr/share/ganeti/os")
VARIANTS = Path("/etc/ganeti/instance-debootstrap/variants")

pytestmark = [
    pytest.mark.skipif(
        os.geteuid() != 0, reason="scripts mount file systems, for which it takes root"
    ),
    pytest.mark.skipif(
        not (DEFINITIONS / "debootstrap").is_dir(),
        reason="DEBIAN'S OPERATING SYSTEMS ARE NOT THERE (deploy/setup --test): they were not run",
    ),
]


def installed(root: Path, os: str, size_mib: int) -> tuple[str, ScriptReport]:
    """Run the script ``create`` on a disk that is a file; return what it said, and how it ended."""
    directories = Directories(local=str(root))
    storage = FileStorage(lambda: directories)
    disk = file_disk(DISK, f"{root}/disk", size=size_mib)
    places = Places(search_path=(DEFINITIONS,), runs=root / "run", logs=root / "logs")
    driver = ProcessOsDriver(places, storage.open)

    async def story() -> tuple[str, ScriptReport]:
        await storage.ensure_present(disk)
        await storage.attach(disk, Access.SOLE)
        order = order_for(disk, Script.CREATE, os=os)
        await driver.check(order)
        await driver.begin(RUN, order)
        return await ended(driver, RUN)

    return run(story(), limit_s=600)


def test_both_are_found_and_can_be_used(tmp_path: Path) -> None:
    places = Places(search_path=(DEFINITIONS,), runs=tmp_path / "run", logs=tmp_path / "logs")
    driver = ProcessOsDriver(places, lambda _: -1)
    found = {each.name: each for each in asyncio.run(driver.definitions())}
    assert found["noop"].problem == found["debootstrap"].problem == ""
    assert found["debootstrap"].variants == ("default",)
    assert [name for name, _ in found["debootstrap"].parameters] == ["filesystem"]
    assert set(found["debootstrap"].scripts) == set(Script)
    assert 20 in found["debootstrap"].api_versions


def test_noop_leaves_a_disk_as_it_is(tmp_path: Path) -> None:
    _, report = installed(tmp_path, "noop", 8)
    assert report.problem == ""
    assert not any((tmp_path / "disk").read_bytes())


@pytest.mark.skipif(
    "GANTRY_INSTALL_DEBIAN" not in os.environ,
    reason="it downloads a whole Debian, for minutes: GANTRY_INSTALL_DEBIAN=1 has it done",
)
def test_debootstrap_installs_debian_and_leaves_nothing_mounted(tmp_path: Path) -> None:
    mirror = _mirror()
    if not mirror:
        pytest.skip("no mirror of Debian is known or can be reached from here")
    loops = _loops()
    with_variant(tmp_path, _INSTALL, f"SUITE=bookworm\nMIRROR={mirror}\nEXTRA_PKGS=\n")
    assert _loops() == loops
    there = tmp_path / "there"
    there.mkdir()
    look = 'mount -o loop,ro "$1" "$2" && cat "$2/etc/hostname" "$2/etc/debian_version"'
    seen = really(
        "unshare", "--mount", "sh", "-c", look, "look", str(tmp_path / "disk"), str(there)
    )
    assert seen[0] == "web1"
    assert seen[1].startswith("12")


# In names of mounts of its own, where the configuration of the definition is another one.
_INSTALL = """
import pathlib, sys
from tests.contract.test_debian_os_definitions import installed
said, report = installed(pathlib.Path(sys.argv[1]), "debootstrap+default", 900)
sys.exit(report.problem or 0)
"""


@pytest.mark.skipif(
    not all(map(shutil.which, ("dump", "restore"))),
    reason="THE PROGRAMS dump AND restore ARE NOT THERE: nothing was exported",
)
def test_what_debootstrap_exports_it_imports_on_a_larger_disk(tmp_path: Path) -> None:
    kept, there = tmp_path / "kept", tmp_path / "there"
    for directory in (kept, there):
        directory.mkdir()
    (kept / "hello").write_text("all work and no play\n" * 1000)
    disk = tmp_path / "alpha/disks/disk"
    disk.parent.mkdir(parents=True)
    really("mke2fs", "-q", "-t", "ext4", "-d", str(kept), str(disk), "8M")
    loops = _loops()
    with_variant(tmp_path, _MOVE)
    assert _loops() == loops
    imported = str(tmp_path / "beta/disks/disk")
    look = 'mount -o loop,ro "$1" "$2" && cat "$2/hello"'
    seen = really("unshare", "--mount", "sh", "-c", look, "look", imported, str(there))
    assert seen == ["all work and no play"] * 1000


_MOVE = """
import pathlib, sys
from tests.support.script_streams import move_by
move_by("debootstrap+default", pathlib.Path("/usr/share/ganeti/os"), pathlib.Path(sys.argv[1]))
"""


def with_variant(root: Path, program: str, told: str = "") -> None:
    """Run a program of Python's in mounts of its own, where the usual variant is another one."""
    variants = root / "variants"
    variants.mkdir()
    # No partitions: where tests run, there may be no device mapper.
    text = f"PARTITION_STYLE=none\nGENERATE_CACHE=no\n{told}"
    (variants / "default.conf").write_text(text)
    really(
        "unshare", "--mount", "sh", "-c", 'mount --bind "$1" "$2" && shift 2 && exec "$@"',
        "with-variants", str(variants), str(VARIANTS), sys.executable, "-c", program, str(root),
    )  # fmt: skip


def really(*argv: str) -> list[str]:
    """Run a program; return the lines that it prints."""
    directory = str(Path(__file__).parents[2])
    finished = run(execute(*argv, timeout_s=900, directory=directory), limit_s=900)
    return finished.stdout.decode().splitlines()


def _mirror() -> str:
    """Return the mirror that this machine itself is installed from."""
    for line in really("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)"):
        uri, _, release = line.partition(" ")
        if release == "bookworm" and "debian" in uri and uri.startswith("http"):
            return uri
    return ""


def _loops() -> list[str]:
    lines = really("losetup", "--list", "--noheadings", "--output", "BACK-FILE")
    return [line for line in lines if line.endswith("/disk")]
