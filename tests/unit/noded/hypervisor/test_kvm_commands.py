"""QEMU's command line says what was asked for."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from common.model.disk import Mode
from common.model.kvm import KvmParameters
from common.model.kvm_words import (
    Accelerator,
    BootOrder,
    DiskAio,
    DiskCache,
    DiskDiscard,
    Firmware,
    NicType,
)
from common.names import InstanceId, InstanceName, MiB, NicId
from common.noderpc.instances import GuestSpec
from common.noderpc.network import NicSpec
from noded.hypervisor.kvm import commands, drives
from noded.hypervisor.kvm.boot_sector import boot_sector
from noded.hypervisor.kvm.disk_devices import Source
from noded.hypervisor.kvm.firmware import Opened
from noded.hypervisor.kvm.handed import Handed
from noded.hypervisor.kvm.nic_devices import Tap
from noded.hypervisor.slots import disk_slots, nic_slots
from tests.support.disks import file_disk

WEB1 = InstanceId("11111111-0000-4000-8000-000000000001")
HOME = "/run/gantry/instances/web1"
PROGRAM = "/usr/bin/qemu-system-x86_64"
QMP, SERIAL, LOG, DISK, TAP, KERNEL, INITRD, NEWS = range(3, 11)
AGENT, CODE, VARIABLES, CD = 20, 21, 22, 23
VHOSTS = (30, 31)


def spec(**changes: Any) -> GuestSpec:
    nic = NicSpec(
        id=NicId("nic"), instance=WEB1, mac="aa:00:00:00:00:01", mode="bridged", link="br0"
    )
    fields: dict[str, Any] = {
        "id": WEB1,
        "name": InstanceName("web1.example.com"),
        "hypervisor": "kvm",
        "memory": MiB(512),
        "vcpus": 2,
        "disks": (file_disk("d" * 36, "/srv/web1.img"),),
        "nics": (nic,),
    }
    return GuestSpec(**fields | changes)


def argv(
    parameters: KvmParameters | None = None,
    guest: GuestSpec | None = None,
    *,
    home: str = HOME,
    is_block_device: bool = False,
    direct: bool = True,
    accelerator: Accelerator = Accelerator.TCG,
    huge_page: int = 0,
    incoming: bool = False,
) -> tuple[str, ...]:
    guest = guest or spec()
    parameters = parameters or KvmParameters()
    source = Source(fdset=DISK, is_block_device=is_block_device, direct=direct)
    return commands.guest(
        replace(
            guest,
            slots=disk_slots((disk.id for disk in guest.disks), guest.slots),
            nic_slots=nic_slots((nic.id for nic in guest.nics), guest.nic_slots),
        ),
        parameters,
        program=PROGRAM,
        accelerator=accelerator,
        handed=Handed(
            qmp=QMP,
            news=NEWS,
            serial=SERIAL,
            serial_log=LOG,
            kernel=KERNEL if parameters.kernel_path else None,
            initrd=INITRD if parameters.initrd_path else None,
            agent=AGENT if parameters.use_guest_agent else None,
            firmware=None if parameters.firmware is Firmware.BIOS else Opened(CODE, VARIABLES),
            images=tuple(range(CD, CD + len(drives.images(parameters)))),
            disks=(source,) * len(guest.disks),
            taps=tuple(
                Tap(tuple(range(TAP, TAP + nic.queues)), VHOSTS if parameters.vhost_net else ())
                for nic in guest.nics
            ),
        ),
        home=home,
        huge_page=huge_page,
        incoming=incoming,
    )


def values(line: tuple[str, ...], option: str) -> list[str]:
    return [line[i + 1] for i, word in enumerate(line) if word == option]


def devices(line: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    found = [json.loads(value) for value in values(line, "-device")]
    return {device["driver"]: device for device in found}


def test_guest_is_identified_and_confined() -> None:
    line = argv()
    assert line[0] == PROGRAM
    assert values(line, "-uuid") == [WEB1]
    assert values(line, "-name") == ["guest=web1.example.com,debug-threads=on"]
    assert values(line, "-machine") == ["type=pc-i440fx-7.2,accel=tcg,acpi=on"]
    assert values(line, "-m") == [f"{512 * 1024 - 8}k"]
    assert values(line, "-smp") == ["2"]
    assert f"opaque={HOME}" in values(line, "-add-fd")[0]
    assert "spawn=deny" in values(line, "-sandbox")[0]
    assert "-daemonize" not in line
    assert "-cpu" not in line
    assert "-incoming" not in line


def test_memory_makes_old_qemu_look_at_single_pages_under_tcg_only() -> None:
    (size,) = values(argv(), "-m")
    assert int(size.removesuffix("k")) % 256 != 0
    assert values(argv(accelerator=Accelerator.KVM), "-m") == ["512M"]


def test_shell_waits_and_does_not_run_by_itself() -> None:
    line = argv(incoming=True)
    assert values(line, "-incoming") == ["defer"]
    assert "-S" in line
    assert "-S" not in argv()


def test_kernel_is_booted_with_root_and_console() -> None:
    line = argv(
        KvmParameters(kernel_path="/k", initrd_path="/i", root_path="", kernel_args="quiet")
    )
    assert values(line, "-kernel") == [f"/proc/self/fd/{KERNEL}"]
    assert values(line, "-initrd") == [f"/proc/self/fd/{INITRD}"]
    assert values(line, "-append") == ["quiet console=ttyS0,38400"]
    line = argv(KvmParameters(kernel_path="/k", serial_console=False))
    assert values(line, "-append") == ["root=/dev/vda1 ro"]
    assert "-append" not in argv()


def test_disk_is_opened_as_asked() -> None:
    disk = file_disk("0123456789abcdef0123456789", "/srv/a,b c", mode=Mode.READ_ONLY)
    line = argv(guest=spec(disks=(disk, file_disk("e", "/e"))), is_block_device=True, direct=False)
    first, second = (json.loads(node) for node in values(line, "-blockdev"))
    assert first["file"]["filename"] == f"/dev/fdset/{DISK}"
    assert f"fd={DISK},set={DISK}" in values(line, "-add-fd")
    assert first["file"]["driver"] == "host_device"
    assert first["read-only"] is True
    assert first["cache"] == {"direct": False}
    assert second["node-name"] == "disk1"
    found = [json.loads(device) for device in values(line, "-device")]
    bootable = [device["id"] for device in found if "bootindex" in device]
    assert bootable == ["virtio-disk0"]


@pytest.mark.parametrize(
    ("direct", "aio", "opened"),
    [
        (True, DiskAio.NATIVE, "native"),
        (False, DiskAio.NATIVE, "threads"),
        (True, DiskAio.THREADS, "threads"),
    ],
)
def test_native_aio_needs_direct_access(direct: bool, aio: DiskAio, opened: str) -> None:
    (node,) = values(argv(KvmParameters(disk_aio=aio), direct=direct), "-blockdev")
    assert json.loads(node)["file"]["aio"] == opened


def test_writethrough_is_told_to_the_guest() -> None:
    line = argv(KvmParameters(disk_cache=DiskCache.WRITETHROUGH))
    assert devices(line)["virtio-blk-pci"]["write-cache"] == "off"
    assert devices(argv())["virtio-blk-pci"]["write-cache"] == "on"


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (DiskDiscard.DEFAULT, "unmap"),
        (DiskDiscard.UNMAP, "unmap"),
        (DiskDiscard.IGNORE, "ignore"),
    ],
)
def test_what_a_guest_discards_is_given_back_unless_that_is_not_wanted(
    wanted: DiskDiscard, told: str
) -> None:
    line = " ".join(argv(KvmParameters(disk_discard=wanted)))
    assert f'"discard": "{told}"' in line


def test_nic_uses_its_tap() -> None:
    line = argv()
    assert json.loads(values(line, "-netdev")[0]) == {
        "type": "tap", "id": "net0", "fd": str(TAP),
    }  # fmt: skip
    assert devices(line)["virtio-net-pci"]["mac"] == "aa:00:00:00:00:01"
    assert devices(line)["virtio-net-pci"]["romfile"] == ""
    line = argv(KvmParameters(nic_type=NicType.E1000, boot_order=BootOrder.NETWORK))
    assert devices(line)["e1000"]["bootindex"] == 0
    assert "romfile" not in devices(line)["e1000"]


def test_display_is_for_this_machine_only() -> None:
    line = argv(KvmParameters(vnc_bind_address="::1"))
    assert values(line, "-vnc") == ["[::1]:0,to=999"]
    line = argv(KvmParameters(vnc_bind_address="0.0.0.0", vnc_password_file="/etc/gantry/vnc/web1"))
    assert values(line, "-vnc") == ["0.0.0.0:0,to=999,password=on"]
    assert not any("/etc/gantry" in word for word in line)
    assert values(line, "-vga") == ["std"]
    assert values(argv(), "-vga") == ["none"]


def test_qemu_is_told_no_path_of_this_node() -> None:
    parameters = KvmParameters(kernel_path="/srv/k", initrd_path="/srv/i")
    disk = file_disk("d", "/srv/disk")
    line = argv(parameters, spec(disks=(disk,)))
    assert not any("/srv" in word for word in line)
    assert [word for word in line if "/run" in word] == [f"fd={LOG},set={LOG},opaque={HOME}"]


def test_a_descriptor_is_handed_for_everything_that_is_named() -> None:
    handed = Handed(
        qmp=3, news=10, serial=4, serial_log=5, kernel=6, initrd=None, images=(14,), agent=15,
        taps=(Tap((9,)), Tap((8, 11), (12, 13))), firmware=Opened(16, 17),
        disks=(Source(fdset=7, is_block_device=False, direct=True),),
    )  # fmt: skip
    assert sorted(handed.all) == list(range(3, 18))


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=40))
def test_no_path_can_add_an_option(path: str) -> None:
    """What comes from outside stays one value, whatever commas and quotes are in it."""
    plain = argv()
    line = argv(home=path)
    assert len(line) == len(plain)
    log, *_ = values(line, "-add-fd")
    assert _split(log) == [f"fd={LOG}", f"set={LOG}", f"opaque={path}"]


def _split(value: str) -> list[str]:
    """Split as QEMU does: at single commas."""
    marked = value.replace(",,", "\0")
    return [part.replace("\0", ",") for part in marked.split(",")]


def test_boot_sector_is_one() -> None:
    program = boot_sector()
    assert len(program) == 512
    assert program.endswith(b"\x55\xaa")


def test_encrypted_displays_have_their_certificates_in_the_guests_own_directory() -> None:
    certified = KvmParameters(
        vnc_bind_address="0.0.0.0", vnc_tls=True, vnc_x509_path="/x509", vnc_x509_verify=True
    )
    line = argv(certified)
    assert values(line, "-vnc") == ["0.0.0.0:0,to=999,tls-creds=display-tls"]
    (told,) = (json.loads(each) for each in values(line, "-object") if "display-tls" in each)
    assert told["qom-type"] == "tls-creds-x509"
    assert told["dir"].endswith("/vnc-tls")
    assert told["verify-peer"] is True
    (spice,) = values(argv(KvmParameters(spice_bind="::1", spice_use_tls=True)), "-spice")
    assert ",tls-port=" in spice
    assert ",port=" not in spice
    assert "/spice-tls," in spice
