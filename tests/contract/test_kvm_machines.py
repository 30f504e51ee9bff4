"""QEMU takes the machines that parameters ask for, and guests boot in them."""

import os
from pathlib import Path
from typing import Any

import pytest

from common.errors import InvalidRequest, NodeFailure
from common.noderpc.instances import NoConsole
from noded.hypervisor.kvm import firmware_files
from noded.hypervisor.kvm.monitor import monitor
from noded.hypervisor.kvm.parse import parse_threads
from tests.support.hypervisors import (
    MOVE,
    WEB1,
    KvmRig,
    goes_on,
    has_qemu,
    report_of,
    run_kvm,
    send,
    state_of,
    until,
)

pytestmark = pytest.mark.skipif(
    not has_qemu, reason="QEMU IS NOT INSTALLED: the driver for real guests was not tested"
)

Q35 = {"machine_version": "pc-q35-7.2"}
DISPLAY = {"vnc_bind_address": "127.0.0.1", "keymap": "de", "usb_mouse": "tablet"}


@pytest.mark.parametrize(
    "given",
    [
        {"disk_type": "ide"},
        {"disk_type": "ide", **Q35},
        {"disk_type": "scsi"},
        {"disk_type": "scsi-hd", "scsi_controller_type": "megasas"},
        {"disk_type": "scsi", "scsi_controller_type": "virtio-scsi-pci", **Q35},
        {"soundhw": "hda", "use_guest_agent": True, **DISPLAY},
        {"soundhw": "ac97", "usb_devices": "keyboard,mouse,wacom-tablet", **Q35},
        {"soundhw": "es1370", "rng": False, "serial_speed": 9600, "use_localtime": True},
        {"cpu_cores": 1, "cpu_threads": 1, "cpu_sockets": 1, "cpu_type": "qemu64"},
        {"kvm_flag": "disabled", "vga": "virtio", "reboot_behavior": "exit"},
    ],
    ids=str,
)
def test_a_guest_boots_from_its_disk_in_the_machine_that_is_asked_for(
    given: dict[str, Any],
) -> None:
    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(parameters=given), ())
        await goes_on(rig, "alpha")

    run_kvm(scenario)


@pytest.mark.parametrize("kind", ["", "scsi-cd"])
def test_a_guest_boots_from_a_cd(kind: str) -> None:
    """What is on it is no system, so the firmware says which drive it has tried."""

    async def scenario(rig: KvmRig) -> None:
        image, other = rig.root / "1.iso", rig.root / "2.iso"
        image.write_bytes(bytes(1 << 20))
        other.write_bytes(bytes(1 << 20))
        given = {
            "cdrom_image_path": str(image), "cdrom2_image_path": str(other),
            "boot_order": "cdrom", "cdrom_disk_type": kind,
        }  # fmt: skip
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(rig.spec(parameters=given), ())
        async with monitor(rig.home("alpha").qmp_socket, "web1") as session:
            inside = {
                each["qdev"]: each["inserted"]["image"]["filename"]
                for each in await session.ask("query-block")
                if each.get("qdev", "").startswith("cd")
            }
        assert len(inside) == 2
        await goes_on(rig, "alpha")  # there is nothing to boot from on it, so the disk is next
        await alpha.ensure_gone(WEB1)
        elsewhere = given | {"cdrom_image_path": "/etc/passwd"}
        with pytest.raises(NodeFailure, match="/etc/passwd may not be given to guests here"):
            await alpha.ensure_running(rig.spec(parameters=elsewhere), ())

    run_kvm(scenario)


def test_a_machine_moves_as_it_was_made_whatever_is_configured_by_then() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha, beta = rig.nodes["alpha"], rig.nodes["beta"]
        given = {
            **DISPLAY, "soundhw": "ac97", "use_guest_agent": True, "disk_type": "scsi",
            "scsi_controller_type": "virtio-scsi-pci",
        }  # fmt: skip
        await alpha.ensure_running(rig.spec(parameters=given), ())
        await goes_on(rig, "alpha")
        report = await report_of(alpha)
        assert report is not None
        assert report.pinned["vga"] == "std"  # what it got for its display
        shell = rig.spec(parameters=dict(report.pinned))
        await send(rig, await beta.ensure_receiving(shell, (), MOVE))
        await beta.ensure_resumed(WEB1, MOVE)
        await goes_on(rig, "beta")

    run_kvm(scenario)


def test_spice_is_offered_where_it_was_asked_for() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha, given = rig.nodes["alpha"], {"spice_bind": "127.0.0.1", "soundhw": "hda"}
        with pytest.raises(InvalidRequest, match="no port for its SPICE display"):
            await alpha.ensure_running(rig.spec(parameters=given), ())
        await alpha.ensure_running(rig.spec(parameters=given, port=11971), ())
        report = await report_of(alpha)
        assert report is not None
        assert (report.display, report.display_wants_password) == ("127.0.0.1:11971", False)

    run_kvm(scenario)


def test_processors_run_where_they_are_to_run() -> None:
    async def scenario(rig: KvmRig) -> None:
        allowed = sorted(os.sched_getaffinity(0))
        first, last = allowed[0], allowed[-1]
        alpha, given = rig.nodes["alpha"], {"cpu_mask": f"{first}:{last}"}
        await alpha.ensure_running(rig.spec(parameters=given, vcpus=2), ())
        async with monitor(rig.home("alpha").qmp_socket, "web1") as session:
            threads = parse_threads(await session.ask("query-cpus-fast"))
        assert [os.sched_getaffinity(thread) for thread in threads] == [{first}, {last}]

    run_kvm(scenario)


def test_what_else_qemu_is_told_has_to_be_allowed_by_root() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha, spec = rig.nodes["alpha"], rig.spec(parameters={"kvm_extra": "-rtc base=utc"})
        with pytest.raises(NodeFailure, match="is not told to QEMU here: root of this node says"):
            await alpha.ensure_running(spec, ())
        rig.rules.write_text(f"image {rig.root}\nextra allowed\n")
        await alpha.ensure_running(spec, ())
        await goes_on(rig, "alpha")

    run_kvm(scenario)


def test_a_guest_without_a_serial_port_has_no_console_and_is_known_all_the_same() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(rig.spec(parameters={"serial_console": False}), ())
        console = await alpha.console(WEB1)
        assert isinstance(console, NoConsole)
        assert "serial_console=no" in console.message
        await rig.restart_noded("alpha")
        assert await state_of(rig.nodes["alpha"]) == "running"

    run_kvm(scenario)


def test_huge_pages_that_are_not_there_are_told() -> None:
    async def scenario(rig: KvmRig) -> None:
        spec = rig.spec(parameters={"mem_path": "/srv/no-huge-pages"})
        with pytest.raises(NodeFailure, match=r"\(hugetlbfs\) is mounted at /srv/no-huge-pages"):
            await rig.nodes["alpha"].ensure_running(spec, ())

    run_kvm(scenario)


def test_a_node_without_a_firmware_says_which_package_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(firmware_files, "DIRECTORY", tmp_path)

    async def scenario(rig: KvmRig) -> None:
        with pytest.raises(NodeFailure, match="install the package ovmf"):
            await rig.nodes["alpha"].ensure_running(rig.spec(parameters={"firmware": "uefi"}), ())

    run_kvm(scenario)


needs_ovmf = pytest.mark.skipif(
    not firmware_files.DIRECTORY.is_dir(),
    reason="OVMF IS NOT INSTALLED: no guest was started with UEFI",
)


@needs_ovmf
def test_a_guest_comes_up_with_uefi_and_moves_with_it() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha, beta = rig.nodes["alpha"], rig.nodes["beta"]
        spec = rig.spec(parameters={"firmware": "uefi"}, memory=128)
        await alpha.ensure_running(spec, ())
        log = rig.home("alpha").serial_log
        await until(lambda: b"BdsDxe: starting" in log.read_bytes())
        await send(rig, await beta.ensure_receiving(spec, (), MOVE))
        await beta.ensure_resumed(WEB1, MOVE)
        assert await state_of(beta) == "running"

    run_kvm(scenario)


@needs_ovmf
def test_with_secure_boot_nothing_is_started_that_is_not_signed() -> None:
    async def scenario(rig: KvmRig) -> None:
        given = {"firmware": "secure-boot", **Q35}
        await rig.nodes["alpha"].ensure_running(rig.spec(parameters=given, memory=128), ())
        log = rig.home("alpha").serial_log
        await until(lambda: b"Security Violation" in log.read_bytes())

    run_kvm(scenario)
