"""Scripts of definitions that are not trusted: what they can do, and what they cannot."""

import asyncio
import os
import select
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from common.errors import NodeFailure
from common.names import DiskId, InstanceId
from common.noderpc.operating_systems import Script, ScriptOrder
from noded.operating_systems.leftovers import layers_on
from noded.operating_systems.sandbox import UNTRUSTED
from noded.system.execute import execute
from tests.support.disks import file_disk
from tests.support.https_node import run
from tests.support.os_definition import write_definition, write_script
from tests.support.script_rigs import (
    RUN,
    ProcessRig,
    attached,
    begun,
    ended,
    order,
)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a sandbox takes root to make")

CAP_SYS_RESOURCE = 24  # <linux/capability.h>
OTHER = InstanceId("22222222-0000-4000-8000-000000000002")
LATER = "cluster-13-0-install"
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
mount -t tmpfs none /tmp 2>&1 && echo "could mount"
python3 -c 'import ctypes; print(ctypes.CDLL(None).mount(b"none", b"/tmp", b"tmpfs", 0, None))' \
    | grep -qx -- -1 || echo "could mount without the program"
python3 -c 'import mmap; mmap.mmap(-1, 3 << 30)' 2>/dev/null && echo "could have 3 GiB"
echo "score $(cat /proc/self/oom_score_adj)"
echo 0 2>/dev/null >/proc/self/oom_score_adj && echo "could be killed last"
mknod /tmp/device b 8 0 2>/dev/null && echo "could make a device"
chroot /tmp /bin/true 2>/dev/null && echo "could change its root"
kill -9 1 2>/dev/null && echo "could kill"
echo kept >/tmp/note && cat /tmp/note
echo "bounds $(ulimit -u) $(ulimit -l) $(ulimit -v) $(ulimit -c) $(stat -f -c %c /tmp)"
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


def _own(field: str) -> str:
    """Return what the kernel tells of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith(f"{field}:"))


def become(rig: ProcessRig, text: str) -> None:
    there = rig.definitions / "debian"
    write_definition(there)
    write_script(there, Script.CREATE, text)
    (there / "create").rename(there / "create_untrusted")


async def said(rig: ProcessRig, part: str, *, times: int = 1) -> str:
    """Wait until a script has said something so many times more, and return all of it."""
    begun_with = (await rig.driver.look(RUN, 0)).text.count(part)
    return await heard(rig, part, times=begun_with + times)


async def heard(rig: ProcessRig, part: str, *, times: int = 1, run: str = RUN) -> str:
    """Wait until a script has said something so many times in all, and return all of it."""
    while True:
        report = await rig.driver.look(run, 0)
        assert not report.has_ended, report
        if report.text.count(part) >= times:
            return report.text
        await asyncio.sleep(0.02)


async def another(rig: ProcessRig) -> ScriptOrder:
    """Have a script run that never ends, and return the order of one of another instance."""
    become(rig, "echo begun; exec sleep 4711.5")
    second = file_disk(DiskId(rig.disk.id.replace("d", "e")), f"{rig.root}/disks/second")
    for disk in (rig.disk, second):
        await rig.storage.ensure_present(disk)
    await rig.driver.begin(RUN, order(rig))
    await heard(rig, "begun")
    subject = replace(order(rig).subject, id=OTHER, disks=(replace(second, instance=OTHER),))
    return replace(order(rig), subject=subject)


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
    # The kernel keeps a score that was set with this right; a container may be without it.
    lasting = bool(int(_own("CapEff"), 16) >> CAP_SYS_RESOURCE & 1)
    could = {line for line in said if line.startswith("could")}
    assert could <= (set() if lasting else {"could be killed last"})
    told = dict(line.replace(":\t", " ").partition(" ")[::2] for line in said)
    assert told["id"] == f"{UNTRUSTED} {UNTRUSTED} {UNTRUSTED}"
    assert told["disk"].startswith("/dev/disk0")
    assert (told["CapEff"], told["CapBnd"], told["NoNewPrivs"]) == ("0" * 16, "0" * 16, "1")
    assert told["devices"].split() == ["disk0", "disk1", "fd", "null", "urandom", "zero"]
    ours = {name: str(Path(f"/proc/self/ns/{name}").readlink()) for name in NAMES}
    assert [name for name in NAMES if told[name] == ours[name]] == []
    assert int(told["processes"]) < 10
    assert told["made"] == "a file system"
    # Processes, KiB locked, KiB of addresses, KiB of a core, files.
    assert told["bounds"] == "256 64 2097152 0 65536"
    assert told["score"] == "1000"
    assert "cannot mount: have “mke2fs -d DIRECTORY”" in "\n".join(said)
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


def test_it_never_has_the_disk_of_another_by_letting_go_of_its_own(rig: ProcessRig) -> None:
    let_go = 'perl -e \'open(F, "+<", "/dev/disk0"); ioctl(F, 0x4C01, 0)\'; echo let go'
    become(rig, f"{let_go}; while sleep 0.05; do head -c 16 /dev/disk0; echo; done")
    other = rig.root / "secret"
    other.write_bytes(other.read_bytes().ljust(1 << 20, b"!"))

    async def story() -> tuple[str, str, str]:
        await attached(rig)
        await rig.driver.begin(RUN, order(rig))
        await said(rig, "let go")
        (its,) = layers_on((str(rig.path),)) or ("",)
        done = await execute("losetup", "--find", "--show", str(other), timeout_s=9)
        loop = done.stdout.decode().strip()
        try:
            text = await said(rig, "\n\0", times=3)
        finally:
            await execute("losetup", "--detach", loop, timeout_s=9)
            await rig.driver.end(RUN)
        return its, loop, text

    its, loop, text = run(story())
    assert its
    assert loop != its
    assert "of somebody" not in text
    assert layers_on((str(rig.path), str(other))) == ()


def test_one_that_exports_a_disk_leaves_nothing_on_the_others(rig: ProcessRig) -> None:
    second = file_disk(DiskId(rig.disk.id.replace("d", "e")), f"{rig.root}/disks/second")
    write_script(rig.definitions / "debian", Script.EXPORT, "cat $DISK_0_PATH $DISK_1_PATH")

    async def story() -> tuple[str, ...]:
        for disk in (rig.disk, second):
            await rig.storage.ensure_present(disk)
        subject = replace(order(rig).subject, disks=(rig.disk, second))
        wanted = replace(order(rig, Script.EXPORT), subject=subject, disk=0)
        await rig.driver.begin(RUN, wanted)
        stream = rig.root / "run" / RUN / "stream"
        pipe = os.open(stream, os.O_RDONLY | os.O_NONBLOCK)
        paths = (str(rig.path), f"{rig.root}/disks/second")
        while not select.select([pipe], [], [], 0)[0]:  # noqa: ASYNC110 -- a pipe tells nobody
            await asyncio.sleep(0.02)
        assert len(layers_on(paths)) == len(paths)
        await rig.driver.end(RUN)  # it has not written all
        os.close(pipe)
        return layers_on(paths)

    assert run(story()) == ()


def test_one_waits_for_another_so_that_both_take_no_more_memory_than_one(rig: ProcessRig) -> None:
    async def story() -> None:
        await rig.driver.begin(LATER, await another(rig))
        assert "waits until another one has ended" in await heard(rig, "\n", run=LATER)
        assert layers_on((str(rig.root / "disks/second"),)) == ()  # nothing is made for it yet
        await rig.driver.end(RUN)
        await heard(rig, "begun", run=LATER)
        await rig.driver.end(LATER)

    run(story())


def test_one_that_waits_for_another_can_be_ended(rig: ProcessRig) -> None:
    async def story() -> None:
        wanted = await another(rig)
        await rig.driver.begin(LATER, wanted)
        assert "waits until another one has ended" in await heard(rig, "\n", run=LATER)
        await rig.driver.end(LATER)
        await rig.driver.begin(LATER, wanted)  # its disk is free again
        assert "waits until another one has ended" in await heard(rig, "\n", run=LATER)
        for each in (LATER, RUN):
            await rig.driver.end(each)

    run(story())


def test_what_verifies_its_parameters_is_not_trusted_either(rig: ProcessRig) -> None:
    text = "echo I am $(id -u) >&2; cat SECRET >&2 && echo I could >&2; exit 1"
    there = rig.definitions / "debian"
    write_script(there, Script.VERIFY, text.replace("SECRET", str(rig.root / "secret")))

    async def story() -> None:
        await attached(rig)
        await rig.driver.check(order(rig))

    with pytest.raises(NodeFailure, match=f"I am {UNTRUSTED}") as refused:
        run(story())
    assert "I could" not in str(refused.value)
    assert [*(rig.root / "run").iterdir()] == []


def test_one_that_fails_says_why(rig: ProcessRig) -> None:
    become(rig, "echo no mirror; exit 3")

    async def story() -> str:
        await attached(rig)
        await rig.driver.begin(RUN, order(rig))
        _, report = await ended(rig.driver)
        await rig.driver.end(RUN)
        return report.problem

    assert "ended with status 3. It said last: no mirror" in run(story())
