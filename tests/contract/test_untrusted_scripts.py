"""Scripts of definitions that are not trusted: what they can do, and what they cannot."""

import os
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from common.names import DiskId
from common.noderpc.operating_systems import Script
from noded.operating_systems.leftovers import layers_on
from noded.operating_systems.sandbox import UNTRUSTED
from tests.contract.test_os_scripts import (
    RUN,
    ProcessRig,
    attached,
    begun,
    ended,
    order,
)
from tests.support.disks import file_disk
from tests.support.https_node import run
from tests.support.os_definition import write_definition, write_script

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a sandbox takes root to make")

NAMES = ("ipc", "mnt", "net", "pid", "uts")
# Each line says what it tries; what it must not be able to do, it says “could” of.
TRIES = r"""
echo "id $(id -u) $(id -g) $(id -G)"
echo "disk $DISK_0_PATH $(cat "$DISK_0_PATH" | head -c 4)"
grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status
echo "devices $(ls /dev | tr '\n' ' ')"
for kind in NAMES; do echo "$kind $(readlink /proc/self/ns/$kind)"; done
echo "processes $(ls /proc | grep -c '^[0-9]')"
for path in SECRET /etc/shadow /etc/hostname /root /home /var /run /sys /proc/1/root/etc; do
    { ls "$path" || cat "$path"; } >/dev/null 2>&1 && echo "could read $path"
done
for path in / /usr /etc /dev /proc/sys/kernel/hostname "$PWD" "$PWD/create_untrusted"; do
    { touch "$path/new" || echo more >>"$path"; } 2>/dev/null && echo "could write $path"
done
unshare --user true 2>/dev/null && echo "could have users of its own"
mount -t tmpfs none /tmp 2>/dev/null && echo "could mount"
mknod /tmp/device b 8 0 2>/dev/null && echo "could make a device"
chroot /tmp /bin/true 2>/dev/null && echo "could change its root"
kill -9 1 2>/dev/null && echo "could kill"
echo kept >/tmp/note && cat /tmp/note
printf 'the guest' | dd of="$DISK_1_PATH" conv=notrunc status=none
mke2fs -q -t ext4 -d "$PWD" "$DISK_0_PATH" && echo made a file system
"""


@pytest.fixture
def rig(tmp_path: Path) -> ProcessRig:
    """Return a node with a definition that is not trusted, and a secret of somebody else."""
    rig = ProcessRig(tmp_path)
    (tmp_path / "secret").write_text("of somebody else")
    become(rig, TRIES.replace("SECRET", str(tmp_path / "secret")).replace("NAMES", " ".join(NAMES)))
    return rig


def become(rig: ProcessRig, text: str) -> None:
    there = rig.definitions / "debian"
    write_definition(there)
    write_script(there, Script.CREATE, text)
    (there / "create").rename(there / "create_untrusted")


def test_it_has_its_disks_and_nothing_else(rig: ProcessRig) -> None:
    second = file_disk(DiskId(rig.disk.id.replace("d", "e")), f"{rig.root}/disks/second")

    async def story() -> str:
        for disk in (rig.disk, second):
            await rig.storage.ensure_present(disk)
        subject = replace(order(rig).subject, disks=(rig.disk, second))
        await rig.driver.begin(RUN, replace(order(rig), subject=subject))
        said, report = await ended(rig.driver)
        await rig.driver.end(RUN)  # before anything is held against it: loop devices outlive tests
        assert report.problem == ""
        return said

    said = run(story()).splitlines()
    assert [line for line in said if line.startswith("could")] == []
    told = dict(line.replace(":\t", " ").partition(" ")[::2] for line in said)
    assert told["id"] == f"{UNTRUSTED} {UNTRUSTED} {UNTRUSTED}"
    assert told["disk"].startswith("/dev/disk0")
    assert (told["CapEff"], told["CapBnd"], told["NoNewPrivs"]) == ("0" * 16, "0" * 16, "1")
    assert told["devices"].split() == ["disk0", "disk1", "fd", "null", "urandom", "zero"]
    ours = {name: str(Path(f"/proc/self/ns/{name}").readlink()) for name in NAMES}
    assert [name for name in NAMES if told[name] == ours[name]] == []
    assert int(told["processes"]) < 10
    assert told["made"] == "a file system"
    found = subprocess.run(  # noqa: TID251 -- the other program, and no loop in this thread
        ["debugfs", "-R", "cat /ganeti_api_version", str(rig.path)], capture_output=True, check=True
    )
    assert found.stdout == b"15\n20\n"
    assert (rig.root / "disks/second").read_bytes().startswith(b"the guest")
    assert layers_on((str(rig.path), f"{rig.root}/disks/second")) == ()


def test_it_is_killed_with_all_that_was_made_for_it(rig: ProcessRig) -> None:
    become(rig, "echo begun; exec sleep 4711.5")

    async def story() -> None:
        await attached(rig)
        await begun(rig)
        assert layers_on((str(rig.path),)) != ()
        await rig.driver.end(RUN)

    run(story())
    assert layers_on((str(rig.path),)) == ()
    mounted = Path("/proc/self/mounts").read_text()
    assert str(rig.root / "run") not in mounted


def test_one_that_fails_says_why(rig: ProcessRig) -> None:
    become(rig, "echo no mirror; exit 3")

    async def story() -> str:
        await attached(rig)
        await rig.driver.begin(RUN, order(rig))
        _, report = await ended(rig.driver)
        await rig.driver.end(RUN)
        return report.problem

    assert "ended with status 3. It said last: no mirror" in run(story())
