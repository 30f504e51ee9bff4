"""A guest's TPM: Debian's swtpm behind a real QEMU, with its state on a disk of the instance."""

import contextlib
import os
import shutil
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest, NodeFailure
from common.model.disk import Mode, Qcow2Backing
from common.model.kvm_words import Accelerator
from common.noderpc.disks import DiskSpec
from common.noderpc.instances import GuestSpec, GuestState
from noded.hypervisor.kvm import tpm
from noded.hypervisor.kvm.home import Record
from noded.hypervisor.kvm.monitor import monitor
from noded.hypervisor.kvm.tpm_commands import PROGRAM
from noded.hypervisor.kvm.user import ROOT
from noded.system.process import Process, start
from tests.contract.test_chroot import mounts
from tests.support.hypervisors import (
    MOVE,
    WEB1,
    KvmRig,
    goes_on,
    has_qemu,
    run_kvm,
    send,
    state_of,
    until,
)

MAGIC = b"nilmptws"  # with which a state begins; of swtpm 0.7
USER = 70_000  # of a guest
SMALLEST = 1000  # bytes of a state that was written

pytestmark = [
    pytest.mark.skipif(not has_qemu, reason="QEMU IS NOT INSTALLED: no TPM was tested"),
    pytest.mark.skipif(
        shutil.which(PROGRAM) is None, reason="SWTPM IS NOT INSTALLED: no TPM was tested"
    ),
    pytest.mark.skipif(os.geteuid() != ROOT, reason="NOT ROOT: no TPM can be given a disk"),
]


def trusted(rig: KvmRig, number: int = 1) -> GuestSpec:
    """Describe web1 with a TPM that keeps its state on disk ``number``."""
    disks = (rig.disk(0), rig.disk(number))
    return rig.spec(disks=disks, parameters={"tpm": disks[1].id})


def state(rig: KvmRig, number: int = 1) -> bytes:
    """Return what is on the disk of a TPM, without what was never written to."""
    return (rig.root / f"{number}.img").read_bytes().rstrip(b"\0")


def is_same(one: bytes, other: bytes, stranger: bytes) -> bool:
    """Tell whether two states are of one TPM.

    A TPM is told by its seeds, which nobody else has; counters change with each start.
    """
    assert min(map(len, (one, other, stranger))) > SMALLEST
    seeds = [i for i, (a, b) in enumerate(zip(one, stranger, strict=False)) if a != b]
    kept = sum(one[i : i + 1] == other[i : i + 1] for i in seeds)
    return kept > len(seeds) * 0.8


def emulator(rig: KvmRig, node: str = "alpha") -> Process | None:
    return rig.home(node).tpm_process()


async def lost_tpm(rig: KvmRig) -> bool:
    (told,) = await rig.nodes["alpha"].guests()
    return told.lost_tpm


def has_none(rig: KvmRig, node: str = "alpha") -> bool:
    found = emulator(rig, node)
    if found is None:
        return True
    with found:
        return found.has_ended


def status(process: Process) -> dict[str, str]:
    """Return what the kernel says of a process."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return {name: told.strip() for name, _, told in (line.partition(":") for line in lines)}


def names(directory: Path) -> set[str]:
    return {each.name for each in directory.iterdir()}


def loops(rig: KvmRig) -> Iterator[str]:
    """Yield the files of the rig that a loop device is made of."""
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        name = backing.read_text().strip()
        if name.startswith(str(rig.root)):
            yield name


def left_alone(rig: KvmRig) -> Process:
    """Start a TPM as noded does, which is killed then: it has no QEMU, and no line to one."""
    home, guest = rig.home("alpha"), trusted(rig)
    record = Record(
        id=guest.id, name=guest.name, memory=guest.memory, vcpus=guest.vcpus, nics=(),
        accelerator=Accelerator.TCG, user=USER,
    )  # fmt: skip
    home.prepare(record)
    with contextlib.ExitStack() as ours:

        def keep(descriptor: int) -> int:
            ours.callback(os.close, descriptor)
            return descriptor

        made = tpm.prepare(home, record, guest.disks[1], rig.opening["alpha"], keep)
        return start(made.command, home.tpm_log, made.handed)


@contextlib.contextmanager
def not_beyond_the_test(process: Process) -> Iterator[Process]:
    with process:
        try:
            yield process
        finally:
            process.signal(signal.SIGKILL)


def test_a_guest_finds_the_same_tpm_at_each_start_and_wherever_it_moves() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha, beta = rig.nodes["alpha"], rig.nodes["beta"]
        await alpha.ensure_running(trusted(rig, 2), ())
        await goes_on(rig, "alpha")
        await alpha.ensure_gone(WEB1)
        stranger = state(rig, 2)
        await alpha.ensure_running(trusted(rig), ())
        await goes_on(rig, "alpha")
        await alpha.reset(WEB1)
        await goes_on(rig, "alpha")
        await alpha.ensure_gone(WEB1)
        first = state(rig)
        assert first.startswith(MAGIC)
        await alpha.ensure_running(trusted(rig), ())
        await goes_on(rig, "alpha")
        second = state(rig)
        assert is_same(first, second, stranger)
        assert not is_same(first, stranger, second)
        await send(rig, await beta.ensure_receiving(trusted(rig), (), MOVE))
        await alpha.ensure_no_shell(WEB1)
        assert has_none(rig, "alpha")
        await beta.ensure_resumed(WEB1, MOVE)
        await goes_on(rig, "beta")
        await beta.ensure_gone(WEB1)
        assert has_none(rig, "beta")
        assert is_same(first, state(rig), stranger)

    run_kvm(scenario)


def test_a_guest_is_told_of_its_tpm_and_of_no_disk_of_it() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(trusted(rig), ())
        async with monitor(rig.home("alpha").qmp_socket, "web1") as session:
            (told,) = await session.ask("query-tpm")
        assert (told["model"], told["options"]["type"]) == ("tpm-tis", "emulator")
        assert await rig.seen("alpha") == {0: 1}
        (report,) = await alpha.guests()
        assert report.disks == {disk.id: slot for slot, disk in enumerate(trusted(rig).disks)}
        now = rig.spec(disks=(rig.disk(0), rig.disk(1), rig.disk(2)))  # set otherwise meanwhile
        await goes_on(rig, "alpha")
        await alpha.ensure_disks(now)
        assert await rig.seen("alpha") == {0: 1, 2: 1}
        with pytest.raises(Conflict, match="TPM that keeps its state on disk"):
            await alpha.ensure_disks(rig.spec())
        assert not has_none(rig)

    run_kvm(scenario)


def test_a_tpm_is_nobody_outlives_noded_and_is_gone_with_its_guest() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(trusted(rig), ())
        record, found = rig.home("alpha").record(), emulator(rig)
        assert record is not None
        assert found is not None
        with found:
            told = status(found)
            assert {*told["Uid"].split(), *told["Gid"].split()} == {str(record.user)}
            assert {int(told[f"Cap{each}"], 16) for each in ("Prm", "Eff", "Bnd", "Amb")} == {0}
            assert (told["NoNewPrivs"], told["Seccomp"]) == ("1", "2")
            assert list((rig.home("alpha").tpm).iterdir()) == []  # its device is its own alone
            await rig.restart_noded("alpha")
            await goes_on(rig, "alpha")
            assert not has_none(rig)
            assert list(loops(rig)) == [str(rig.root / "1.img")]
            await rig.nodes["alpha"].ensure_gone(WEB1)
            assert found.has_ended
        await until(lambda: not list(loops(rig)))

    run_kvm(scenario)


@pytest.mark.parametrize("use_chroot", [False, True])
def test_a_tpm_sees_programs_its_device_and_nothing_that_is_kept_on_its_node(
    use_chroot: bool,
) -> None:
    async def scenario(rig: KvmRig) -> None:
        guest, home = trusted(rig), rig.home("alpha")
        guest = replace(guest, parameters=guest.parameters | {"use_chroot": use_chroot})
        await rig.nodes["alpha"].ensure_running(guest, ())
        await goes_on(rig, "alpha")
        record, found = home.record(), emulator(rig)
        assert record is not None
        assert found is not None
        with found:
            seen = Path(f"/proc/{found.pid}/root")
            usual = {"bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "dev", "etc"}
            assert names(seen) <= usual | set(home.tpm.parts[1:2])  # the way to its device
            assert names(seen / "etc") <= {"ld.so.cache", "localtime"}
            assert names(seen / "dev") <= {"null", "zero", "urandom"}
            place = seen / home.tpm.relative_to("/")
            ways = [place, *list(place.parents)[: len(home.tpm.parts) - 2]]
            assert [names(each) for each in ways[1:]] == [{each.name} for each in ways[:-1]]
            assert names(place) == {"state"}
            device = (place / "state").stat()
            assert device.st_mode == stat.S_IFBLK | 0o600
            assert device.st_uid == device.st_gid == record.user
        assert f" {home.tpm} " not in mounts()

    run_kvm(scenario)


def test_a_tpm_ends_with_its_guest_however_that_ends() -> None:
    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(trusted(rig), ())
        assert not has_none(rig)
        await rig.restart_noded("alpha")  # nobody waits for either
        rig.crash("alpha")
        await until(lambda: has_none(rig))
        await until(lambda: not list(loops(rig)))

    run_kvm(scenario)


def test_a_tpm_that_hangs_is_gone_with_its_guest_all_the_same() -> None:
    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(trusted(rig), ())
        found = emulator(rig)
        assert found is not None
        with found:
            found.signal(signal.SIGSTOP)
            await rig.nodes["alpha"].ensure_gone(WEB1)
            assert found.has_ended

    run_kvm(scenario)


def test_a_guest_that_starts_again_has_one_tpm_though_the_last_one_hangs() -> None:
    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(trusted(rig), ())
        await goes_on(rig, "alpha")
        old = emulator(rig)
        assert old is not None
        with not_beyond_the_test(old):
            old.signal(signal.SIGSTOP)
            rig.crash("alpha")
            await rig.nodes["alpha"].ensure_running(trusted(rig), ())
            assert old.has_ended
        await goes_on(rig, "alpha")

    run_kvm(scenario)


def test_a_tpm_of_a_start_that_noded_did_not_outlive_is_gone_at_the_next_start() -> None:
    async def scenario(rig: KvmRig) -> None:
        home = rig.home("alpha")
        with not_beyond_the_test(left_alone(rig)) as old:
            assert not home.tpm_pid.exists()  # so nobody has written down which it is
            await rig.nodes["alpha"].ensure_running(trusted(rig), ())
            assert old.has_ended
        await goes_on(rig, "alpha")
        assert not has_none(rig)

    run_kvm(scenario)


def test_a_guest_whose_tpm_has_died_stays_where_it_is() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(trusted(rig), ())
        await goes_on(rig, "alpha")
        assert not await lost_tpm(rig)
        found = emulator(rig)
        assert found is not None
        with found:
            await found.kill()
        assert await lost_tpm(rig)
        reception = await rig.nodes["beta"].ensure_receiving(trusted(rig), (), MOVE)
        with pytest.raises(NodeFailure, match="goes on here"):
            await send(rig, reception)
        assert await state_of(alpha) is GuestState.RUNNING
        await goes_on(rig, "alpha")

    run_kvm(scenario)


def test_what_a_tpm_cannot_have_is_refused_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha = rig.nodes["alpha"]
        with pytest.raises(InvalidRequest, match="it has no disk “state”"):
            await alpha.ensure_running(rig.spec(parameters={"tpm": "state"}), ())
        for disk in _unusable(rig.disk(1)):
            spec = rig.spec(disks=(rig.disk(0), disk), parameters={"tpm": disk.id})
            with pytest.raises(InvalidRequest, match="a TPM can keep no state"):
                await alpha.ensure_running(spec, ())
        with monkeypatch.context() as without:
            without.setattr(tpm, "PROGRAM", "swtpm-that-is-not-there")
            with pytest.raises(NodeFailure, match=r"install it \(Debian: swtpm\)"):
                await alpha.ensure_running(trusted(rig), ())
        with monkeypatch.context() as broken:
            broken.setattr(tpm, "PROGRAM", "ls")
            why = r"web1 cannot be started: .*its TPM said: .*--tpm2"
            with pytest.raises(NodeFailure, match=why):
                await alpha.ensure_running(trusted(rig), ())
        assert await alpha.guests() == ()
        assert list(loops(rig)) == []
        await alpha.ensure_running(trusted(rig), ())
        await goes_on(rig, "alpha")

    run_kvm(scenario)


@pytest.mark.parametrize("place", [0, 1080, 64 << 10])  # where file systems tell what they are
def test_a_disk_that_holds_something_else_is_not_overwritten(place: int) -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha, guest, file = rig.nodes["alpha"], trusted(rig), rig.root / "1.img"
        with file.open("r+b") as disk:
            os.pwrite(disk.fileno(), b"\x53\xef", place)
        before = file.read_bytes()
        with pytest.raises(InvalidRequest, match=r"web1 cannot be started here: .*would overwrite"):
            await alpha.ensure_running(guest, ())
        assert file.read_bytes() == before
        assert list(loops(rig)) == []
        file.write_bytes(bytes(len(before)))
        await alpha.ensure_running(guest, ())
        await goes_on(rig, "alpha")

    run_kvm(scenario)


def _unusable(disk: DiskSpec) -> Iterator[DiskSpec]:
    yield replace(disk, mode=Mode.READ_ONLY)
    yield replace(disk, backing=Qcow2Backing(path="/srv/1.qcow2", shared=False))
