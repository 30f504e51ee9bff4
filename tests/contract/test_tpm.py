"""A guest's TPM: Debian's swtpm behind a real QEMU, with its state on a disk of the instance."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest, NodeFailure
from common.model.backing import Qcow2Backing
from common.model.disk import Mode
from common.noderpc.disks import DiskSpec
from common.noderpc.instances import GuestState
from noded.hypervisor.kvm import tpm
from noded.hypervisor.kvm.monitor import monitor
from noded.system.process import Process
from tests.contract.test_chroot import mounts
from tests.support.hypervisors import MOVE, WEB1, KvmRig, goes_on, run_kvm, send, state_of, until
from tests.support.tpms import NEEDED, emulator, has_none, loops, trusted

pytestmark = NEEDED

MAGIC = b"nilmptws"  # with which a state begins; of swtpm 0.7
SMALLEST = 1000  # bytes of a state that was written


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


async def lost_tpm(rig: KvmRig) -> bool:
    (told,) = await rig.nodes["alpha"].guests()
    return told.lost_tpm


def status(process: Process) -> dict[str, str]:
    """Return what the kernel says of a process."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return {name: told.strip() for name, _, told in (line.partition(":") for line in lines)}


def names(directory: Path) -> set[str]:
    return {each.name for each in directory.iterdir()}


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
