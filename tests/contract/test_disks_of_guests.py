"""Disks that come, go and grow while a real guest runs."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from common.errors import Conflict, NodeFailure
from common.model.disk import Mode
from common.names import InstanceName
from common.noderpc.disks import DiskSpec
from noded.hypervisor.kvm import letting_go
from noded.hypervisor.kvm.monitor import monitor
from noded.hypervisor.kvm.parse import parse_devices
from noded.system.execute import execute
from tests.support.hypervisors import WEB1, KvmRig, goes_on, has_qemu, report_of, run_kvm, until

pytestmark = pytest.mark.skipif(
    not has_qemu, reason="QEMU IS NOT INSTALLED: the driver for real guests was not tested"
)


def opened(rig: KvmRig) -> set[str]:
    """Return the names of the images that the QEMU of web1 has open."""
    found = rig.home("alpha").process()
    assert found is not None
    links: list[Path] = []
    with found:
        for each in Path(f"/proc/{found.pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # what else it opens may come and go
                links.append(each.readlink())
    return {link.name for link in links if link.suffix == ".img"}


def test_disk_that_is_given_up_is_closed_whether_it_came_early_or_late() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha, first, second = rig.nodes["alpha"], rig.disk(0), rig.disk(1)
        await alpha.ensure_running(rig.spec(disks=(first, second)), ())
        await goes_on(rig, "alpha")
        assert opened(rig) == {"0.img", "1.img"}
        for wanted in ((first,), (first, second), (first,)):
            await alpha.ensure_disks(rig.spec(disks=wanted))
            assert opened(rig) == {f"{number}.img" for number in range(len(wanted))}

    run_kvm(scenario)


def test_guest_sees_a_disk_grow() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(rig.spec(disks=(rig.disk(0), rig.disk(1))), ())
        os.truncate(rig.root / "1.img", 3 << 20)
        for _ in range(2):
            await alpha.ensure_disks(rig.spec(disks=(rig.disk(0), rig.disk(1, size=3))))
            assert await rig.seen("alpha") == {0: 1, 1: 3}

    run_kvm(scenario)


def test_disk_that_is_larger_than_said_is_not_cut() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(rig.spec(disks=(rig.disk(0), rig.disk(1))), ())
        os.truncate(rig.root / "1.img", 8 << 20)
        await alpha.ensure_disks(rig.spec(disks=(rig.disk(0), rig.disk(1, size=4))))
        assert (rig.root / "1.img").stat().st_size == 8 << 20
        assert await rig.seen("alpha") == {0: 1, 1: 8}

    run_kvm(scenario)


def test_read_only_disk_grows_at_the_next_start() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha, read_only = rig.nodes["alpha"], replace(rig.disk(1), mode=Mode.READ_ONLY)
        await alpha.ensure_running(rig.spec(disks=(rig.disk(0), read_only)), ())
        os.truncate(rig.root / "1.img", 3 << 20)
        await alpha.ensure_disks(rig.spec(disks=(rig.disk(0), replace(read_only, size=3))))
        assert await rig.seen("alpha") == {0: 1, 1: 1}

    run_kvm(scenario)


def test_guest_that_does_not_let_go_keeps_its_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A firmware that found nothing to boot from hears nobody."""
    monkeypatch.setattr(letting_go, "LET_GO_S", 0.5)

    async def scenario(rig: KvmRig) -> None:
        alpha, disks = rig.nodes["alpha"], (rig.disk(1), rig.disk(2))
        await alpha.ensure_running(rig.spec(disks=disks), ())
        for _ in range(2):
            with pytest.raises(NodeFailure, match=r"asked to let go of its disk .* may do so"):
                await alpha.ensure_disks(rig.spec(disks=disks[:1]))
            assert opened(rig) == {"1.img", "2.img"}
        report = await report_of(alpha)
        assert report is not None
        assert report.disks == {disks[0].id: 0, disks[1].id: 1}
        # It does let go when it is reset, and a repeat finds that.
        await alpha.reset(WEB1)
        await alpha.ensure_disks(rig.spec(disks=disks[:1]))
        assert opened(rig) == {"1.img"}

    run_kvm(scenario)


def test_paused_guest_is_given_disks_and_not_asked_for_any() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha, disks = rig.nodes["alpha"], (rig.disk(0), rig.disk(1))
        await alpha.ensure_running(rig.spec(), ())
        async with monitor(rig.home("alpha").qmp_socket, "web1") as session:
            await session.ask("stop")
        await alpha.ensure_disks(rig.spec(disks=disks))
        with pytest.raises(Conflict, match="web1 is paused, and cannot let go"):
            await alpha.ensure_disks(rig.spec(disks=disks[:1]))
        assert await rig.seen("alpha") == {0: 1, 1: 1}

    run_kvm(scenario)


def test_disk_that_cannot_be_opened_leaves_nothing() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha, missing = rig.nodes["alpha"], rig.disk(1)
        (rig.root / "1.img").unlink()
        await alpha.ensure_running(rig.spec(), ())
        with pytest.raises(NodeFailure, match=r"1\.img cannot be opened"):
            await alpha.ensure_disks(rig.spec(disks=(rig.disk(0), missing)))
        assert await rig.seen("alpha") == {0: 1}
        report = await report_of(alpha)
        assert report is not None
        assert report.disks == {rig.disk(0).id: 0}

    run_kvm(scenario)


def test_machine_without_acpi_takes_no_disk_while_it_runs() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(rig.spec(parameters={"acpi": False}), ())
        with pytest.raises(NodeFailure, match="does not support hotplugging"):
            await alpha.ensure_disks(rig.spec(disks=(rig.disk(0), rig.disk(1))))
        assert await rig.seen("alpha") == {0: 1}
        assert opened(rig) == {"0.img"}

    run_kvm(scenario)


def test_disk_that_was_half_put_in_is_put_in_as_a_whole() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha, disks = rig.nodes["alpha"], (rig.disk(0), rig.disk(1))
        await alpha.ensure_running(rig.spec(disks=disks), ())
        await goes_on(rig, "alpha")
        # As if noded had died amid it: the device is gone, and what it was made of is not.
        async with monitor(rig.home("alpha").qmp_socket, "web1") as session:
            await session.ask("device_del", id="virtio-disk1")

            async def is_gone() -> bool:
                devices = await session.ask("qom-list", path="/machine/peripheral")
                return "virtio-disk1" not in parse_devices(devices)

            await until(is_gone)
        await alpha.ensure_disks(rig.spec(disks=disks))
        assert await rig.seen("alpha") == {0: 1, 1: 1}
        await alpha.ensure_disks(rig.spec(disks=disks[:1]))
        assert opened(rig) == {"0.img"}

    run_kvm(scenario)


def test_q35_takes_disks_while_it_runs() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha, q35 = rig.nodes["alpha"], {"machine_version": "pc-q35-7.2"}
        disks = tuple(rig.disk(number) for number in range(16))
        await alpha.ensure_running(rig.spec(parameters=q35), ())
        await goes_on(rig, "alpha")
        await alpha.ensure_disks(rig.spec(parameters=q35, disks=disks))
        assert await rig.seen("alpha") == dict.fromkeys(range(16), 1)
        with pytest.raises(Conflict, match="places for 16 disks"):
            await alpha.ensure_disks(rig.spec(parameters=q35, disks=(*disks, rig.disk(16))))
        await goes_on(rig, "alpha")

    run_kvm(scenario)


def test_what_an_older_version_has_started_is_left_as_it_is() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha, home = rig.nodes["alpha"], rig.home("alpha")
        await alpha.ensure_running(rig.spec(name=InstanceName("web1")), ())
        record = home.record()
        assert record is not None
        home.write(replace(record, disks=None))
        with pytest.raises(Conflict, match="an older version has started it; stop it"):
            await alpha.ensure_disks(rig.spec(disks=(rig.disk(0), rig.disk(1))))
        report = await report_of(alpha)
        assert report is not None
        assert report.disks is None

    run_kvm(scenario)


@contextlib.contextmanager
def block_device(path: Path) -> Iterator[str]:
    """Show a file as a block device; ``losetup -c`` has it see that the file has grown."""
    made = subprocess.run(  # noqa: TID251 -- before there is a loop
        ("losetup", "--find", "--show", str(path)), capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        pytest.skip(f"NO BLOCK DEVICES CAN BE MADE HERE: {made.stderr.strip()}")
    device = made.stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(("losetup", "-d", device), check=True)  # noqa: TID251


def test_block_device_comes_grows_and_goes() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha, disk = rig.nodes["alpha"], rig.disk(1)
        with block_device(rig.root / "1.img") as device:

            def open_disk(wanted: DiskSpec) -> int:
                assert wanted.id == disk.id
                return os.open(device, os.O_RDWR | os.O_CLOEXEC)

            await alpha.ensure_running(rig.spec(), ())
            await goes_on(rig, "alpha")
            alpha._open_disk = open_disk  # type: ignore[attr-defined]
            await alpha.ensure_disks(rig.spec(disks=(rig.disk(0), disk)))
            assert await rig.seen("alpha") == {0: 1, 1: 1}
            os.truncate(rig.root / "1.img", 3 << 20)
            await execute("losetup", "-c", device, timeout_s=10)
            await alpha.ensure_disks(rig.spec(disks=(rig.disk(0), rig.disk(1, size=3))))
            assert await rig.seen("alpha") == {0: 1, 1: 3}
            await alpha.ensure_disks(rig.spec())
            assert await rig.seen("alpha") == {0: 1}

    run_kvm(scenario)
