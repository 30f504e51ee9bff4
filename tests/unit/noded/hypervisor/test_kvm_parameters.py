"""Each parameter of a guest is on QEMU's command line, or is refused by name."""

import json
from typing import Any

import msgspec
import pytest

from common.errors import Conflict, InvalidRequest, NodeFailure
from common.model.kvm import KvmParameters
from common.model.kvm_words import Accelerator
from common.names import MiB
from noded.hypervisor.kvm import ram
from noded.hypervisor.kvm.processors import check_processors, pinning
from tests.support.disks import file_disk
from tests.unit.noded.hypervisor.test_kvm_commands import argv, devices, spec, values

MACHINE = {"machine_version": "pc-q35-7.2"}
CDS = {"cdrom_image_path": "/srv/1.iso", "cdrom2_image_path": "/srv/2.iso"}


def read(given: dict[str, Any]) -> KvmParameters:
    return msgspec.convert(given, KvmParameters)


@pytest.mark.parametrize(
    ("given", "option", "value"),
    [
        ({"cpu_cores": 2}, "-smp", "2,cores=2"),
        ({"cpu_sockets": 1, "cpu_cores": 1, "cpu_threads": 2}, "-smp",
         "2,cores=1,threads=2,sockets=1"),
        ({"cpu_type": "host,+vmx"}, "-cpu", "host,+vmx"),
        ({"vga": "cirrus"}, "-vga", "cirrus"),
        ({"vnc_bind_address": "127.0.0.1", "keymap": "de"}, "-k", "de"),
        ({"use_localtime": True}, "-rtc", "base=localtime"),
        ({"acpi": False}, "-machine", "type=pc-i440fx-7.2,accel=tcg,acpi=off"),
        ({"kvm_extra": "-rtc 'base=utc'"}, "-rtc", "base=utc"),
        ({"soundhw": "ac97"}, "-audiodev", "none,id=sound"),
        ({"soundhw": "hda", "spice_bind": "127.0.0.1"}, "-audiodev", "spice,id=sound"),
        ({"rng": True}, "-object", "rng-builtin,id=random"),
        ({"firmware": "uefi"}, "-machine",
         "type=pc-i440fx-7.2,accel=tcg,acpi=on,pflash0=firmware,pflash1=variables"),
        ({"firmware": "secure-boot", **MACHINE}, "-global",
         "driver=cfi.pflash01,property=secure,value=on"),
        ({"firmware": "secure-boot", **MACHINE}, "-machine",
         "type=pc-q35-7.2,accel=tcg,acpi=on,pflash0=firmware,pflash1=variables,smm=on"),
    ],
)  # fmt: skip
def test_an_option_says_what_was_asked_for(given: dict[str, Any], option: str, value: str) -> None:
    assert value in values(argv(read(given)), option)


@pytest.mark.parametrize(
    ("given", "device"),
    [
        ({}, {"driver": "virtio-balloon-pci", "bus": "pci.0", "addr": "b"}),
        (MACHINE, {"driver": "virtio-balloon-pci", "bus": "pcie.0"}),
        ({}, {"driver": "virtio-rng-pci", "rng": "random"}),
        ({"usb_mouse": "tablet"}, {"driver": "usb-tablet", "id": "usb0"}),
        ({"usb_mouse": "mouse", "usb_devices": "keyboard"}, {"driver": "usb-kbd", "id": "usb1"}),
        ({"soundhw": "es1370"}, {"driver": "ES1370", "audiodev": "sound"}),
        ({"soundhw": "hda"}, {"driver": "hda-duplex", "bus": "card.0"}),
        ({"use_guest_agent": True}, {"driver": "virtserialport", "chardev": "agent",
                                     "name": "org.qemu.guest_agent.0"}),
        ({"spice_bind": "::1"}, {"driver": "virtserialport", "chardev": "vdagent"}),
        ({"nic_type": "pcnet"}, {"driver": "pcnet", "mac": "aa:00:00:00:00:01"}),
        ({"nic_type": "ne2k_pci"}, {"driver": "ne2k_pci"}),
        ({"nic_type": "i82551"}, {"driver": "i82551"}),
        ({"nic_type": "i82557b"}, {"driver": "i82557b"}),
        ({"nic_type": "i82559er"}, {"driver": "i82559er"}),
        ({"disk_type": "ide"}, {"driver": "ide-hd", "bus": "ide.0", "unit": 0, "bootindex": 0}),
        ({"disk_type": "ide", **MACHINE}, {"driver": "ide-hd", "bus": "ide.0"}),
        ({"disk_type": "scsi"}, {"driver": "lsi53c895a", "addr": "e"}),
        ({"disk_type": "scsi-hd"}, {"driver": "scsi-hd", "bus": "scsi.0", "scsi-id": 0}),
        ({"disk_type": "scsi", "scsi_controller_type": "megasas"}, {"driver": "megasas"}),
        ({"disk_type": "scsi", "scsi_controller_type": "virtio-scsi-pci"},
         {"driver": "virtio-scsi-pci", "id": "scsi"}),
        (CDS, {"driver": "ide-cd", "drive": "cdrom1", "bus": "ide.1", "unit": 0}),
        (CDS | MACHINE, {"driver": "ide-cd", "drive": "cdrom1", "bus": "ide.4"}),
        (CDS | {"cdrom_disk_type": "scsi-cd"},
         {"driver": "scsi-cd", "drive": "cdrom1", "scsi-id": 7}),
        (CDS | {"cdrom_disk_type": "scsi"}, {"driver": "lsi53c895a"}),
        ({"cdrom_image_path": "/srv/1.iso", "boot_order": "cdrom"},
         {"driver": "ide-cd", "drive": "cdrom0", "bus": "ide.1", "unit": 1, "bootindex": 0}),
    ],
)  # fmt: skip
def test_a_device_is_there_as_asked_for(given: dict[str, Any], device: dict[str, Any]) -> None:
    found = devices(argv(read(given)))[device["driver"]]
    assert {name: found.get(name) for name in device} == device


@pytest.mark.parametrize(
    ("given", "driver"),
    [
        ({"rng": False}, "virtio-rng-pci"),
        ({"serial_console": False}, "isa-serial"),
        ({}, "virtserialport"),
        ({"spice_bind": "::1", "spice_use_vdagent": False}, "virtserialport"),
        ({}, "ide-cd"),
        ({}, "lsi53c895a"),
    ],
)
def test_a_device_that_is_not_wanted_is_not_there(given: dict[str, Any], driver: str) -> None:
    line = argv(read(given))
    assert driver not in devices(line)
    assert any("opaque=" in word for word in line)  # by which a guest's process is known


def test_one_boots_from_the_cd_only_if_that_is_asked() -> None:
    booted = [d["id"] for d in devices(argv(read(CDS))).values() if "bootindex" in d]
    assert booted == ["virtio-disk0"]
    line = argv(read(CDS | {"boot_order": "cdrom"}))
    assert [d["id"] for d in devices(line).values() if "bootindex" in d] == []
    assert '"bootindex": 0' in " ".join(line)
    assert '"bootindex"' not in " ".join(
        argv(read(CDS | {"boot_order": "cdrom", "kernel_path": "/k"}))
    )


def test_what_is_in_a_drive_cannot_be_written_to() -> None:
    nodes = [json.loads(node) for node in values(argv(read(CDS)), "-blockdev")]
    cds = [node for node in nodes if node["node-name"].startswith("cdrom")]
    assert [node["read-only"] for node in cds] == [True, True]
    assert [node["file"]["filename"] for node in cds] == ["/dev/fdset/23", "/dev/fdset/24"]


def test_a_nic_with_several_queues_and_vhost_has_a_descriptor_for_each() -> None:
    nic = msgspec.structs.replace(spec().nics[0], queues=2)
    line = argv(read({"vhost_net": True, "virtio_net_queues": 2}), spec(nics=(nic,)))
    (netdev,) = (json.loads(value) for value in values(line, "-netdev"))
    assert (netdev["fds"], netdev["vhostfds"], netdev["vhost"]) == ("7:8", "30:31", True)
    card = devices(line)["virtio-net-pci"]
    assert (card["mq"], card["vectors"]) == (True, 6)


def test_spice_is_offered_as_asked_at_its_port() -> None:
    given = {
        "spice_bind": "192.0.2.1", "spice_password_file": "/s", "spice_ip_version": 4,
        "spice_image_compression": "quic", "spice_jpeg_wan_compression": "never",
        "spice_zlib_glz_wan_compression": "always", "spice_streaming_video": "filter",
        "spice_playback_compression": False, "spice_use_vdagent": False,
    }  # fmt: skip
    line = argv(read(given), spec(port=11005))
    assert values(line, "-spice") == [
        "addr=192.0.2.1,port=11005,disable-ticketing=off,ipv4=on,image-compression=quic,"
        "jpeg-wan-compression=never,zlib-glz-wan-compression=always,streaming-video=filter,"
        "playback-compression=off,agent-mouse=off"
    ]
    assert values(line, "-vga") == ["qxl"]
    (open_to_all,) = values(argv(read({"spice_bind": "::1"}), spec(port=11006)), "-spice")
    assert open_to_all.startswith("addr=::1,port=11006,disable-ticketing=on,")


def test_a_display_is_at_the_port_that_is_kept_for_it() -> None:
    parameters = read({"vnc_bind_address": "127.0.0.1"})
    assert values(argv(parameters, spec(port=11005)), "-vnc") == ["127.0.0.1:5105"]
    both = read({"vnc_bind_address": "127.0.0.1", "spice_bind": "127.0.0.1"})
    assert values(argv(both, spec(port=11005)), "-vnc") == ["127.0.0.1:0,to=999"]


def test_restarting_ends_a_guest_that_is_not_to_be_restarted() -> None:
    assert "-no-reboot" in argv(read({"reboot_behavior": "exit"}))
    assert "-no-reboot" not in argv()


@pytest.mark.parametrize(
    ("given", "accelerator"),
    [
        ({"kvm_flag": "enabled"}, Accelerator.KVM),
        ({"kvm_flag": "disabled"}, Accelerator.TCG),
        ({"accelerator": "tcg"}, Accelerator.TCG),
        ({}, Accelerator.AUTO),
    ],
)
def test_ganetis_flag_says_how_a_guest_is_run(
    given: dict[str, Any], accelerator: Accelerator
) -> None:
    assert read(given).wanted_accelerator is accelerator


def test_huge_pages_are_taken_by_a_descriptor() -> None:
    line = argv(huge_page=2 << 20)
    assert values(line, "-m") == ["512M"]
    assert "memory-backend=ram" in values(line, "-machine")[0]
    (backend,) = (value for value in values(line, "-object") if value.startswith("memory"))
    assert backend.endswith("id=ram,size=512M,hugetlb=on,hugetlbsize=2097152,prealloc=on")


MOUNTS = "none /mnt/huge hugetlbfs rw,pagesize=1G 0 0\nnone /dev/hugepages hugetlbfs rw 0 0\n"


def test_the_size_of_huge_pages_is_that_of_what_is_mounted() -> None:
    assert ram.find_huge_page("", 100, MOUNTS) == 0
    assert ram.find_huge_page("/mnt/huge/", 2048, MOUNTS) == 1 << 30
    assert ram.find_huge_page("/dev/hugepages", 100, MOUNTS) == 2 << 20
    with pytest.raises(NodeFailure, match=r"1536 MiB, is no multiple .* 1024 MiB"):
        ram.find_huge_page("/mnt/huge", 1536, MOUNTS)
    with pytest.raises(NodeFailure, match=r"No file system of huge pages .* at /mnt"):
        ram.find_huge_page("/mnt", 2048, MOUNTS)


@pytest.mark.parametrize(
    ("mask", "pinned"),
    [
        ("all", {}),
        ("0-1", {7: {0, 1}, 8: {0, 1}}),
        ("0-3,^1,9", {7: {0, 2, 3}, 8: {0, 2, 3}}),
        ("1:3", {7: {1}, 8: {3}}),
        ("all:2", {8: {2}}),
    ],
)
def test_processors_are_pinned_as_asked(mask: str, pinned: dict[int, set[int]]) -> None:
    assert pinning(read({"cpu_mask": mask}), (7, 8), frozenset(range(4))) == pinned


def test_a_node_without_the_processors_that_are_asked_for_says_so() -> None:
    with pytest.raises(InvalidRequest, match="none of the processors that its cpu_mask, 0:8"):
        pinning(read({"cpu_mask": "0:8"}), (7, 8), frozenset(range(4)))


@pytest.mark.parametrize(
    ("given", "vcpus", "said"),
    [
        (
            {"cpu_cores": 2, "cpu_threads": 1, "cpu_sockets": 1},
            4,
            "has 4 processors, and .* make 2",
        ),
        ({"cpu_cores": 3}, 4, "make 3"),
        ({"cpu_mask": "0:1:2"}, 2, "for 3 processors, and it has 2"),
    ],
)
def test_processors_that_cannot_be_arranged_are_refused(
    given: dict[str, Any], vcpus: int, said: str
) -> None:
    with pytest.raises(InvalidRequest, match=said):
        check_processors(read(given), vcpus, spec().name)
    check_processors(read({"cpu_cores": 2, "cpu_mask": "0:1:2:3"}), 4, spec().name)


@pytest.mark.parametrize(
    ("given", "most"),
    [
        ({"disk_type": "ide"}, 4),
        ({"disk_type": "ide"} | CDS, 2),
        ({"disk_type": "ide"} | CDS | MACHINE, 4),
        ({"disk_type": "ide", "cdrom_disk_type": "scsi"} | CDS, 4),
        ({"disk_type": "scsi"}, 6),
        ({"disk_type": "scsi", "scsi_controller_type": "megasas"}, 16),
    ],
)
def test_more_disks_than_their_bus_has_places_for_are_refused(
    given: dict[str, Any], most: int
) -> None:
    disks = tuple(file_disk(f"{number:036}", f"/srv/{number}") for number in range(most + 1))
    line = argv(read(given), spec(disks=disks[:most]))
    places = [json.loads(value) for value in values(line, "-device")]
    taken = [
        (d["bus"], d.get("unit"), d.get("scsi-id"), d.get("addr")) for d in places if "bus" in d
    ]
    assert len(taken) == len(set(taken))
    with pytest.raises(Conflict, match="places for"):
        argv(read(given), spec(disks=disks))


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"floppy_image_path": "/f"}, "floppy_image_path cannot be “/f”: guests have no floppy"),
    ({"security_model": "user"}, "security_model=user needs a security_domain"),
    ({"security_model": ""}, "security_model cannot be “”: each guest"),
    ({"security_domain": "joe"}, "security_domain is set, and security_model is not “user”"),
    ({"security_domain": "joe", "security_model": "pool"}, "security_domain is set"),
    ({"vnc_x509_path": "x509"}, "vnc_x509_path has to be a whole path"),
    ({"vnc_tls": True, "vnc_x509_verify": True}, "vnc_x509_verify needs a vnc_x509_path"),
    ({"vnc_bind_address": "0.0.0.0", "vnc_tls": True}, "without a vnc_password_file"),
    (
        {"vnc_bind_address": "0.0.0.0", "vnc_tls": True, "vnc_x509_path": "/x"},
        "without a vnc_password_file",
    ),
    ({"spice_tls_ciphers": "HIGH,addr=0.0.0.0"}, "spice_tls_ciphers cannot be"),
    ({"vnet_hdr": False}, "vnet_hdr cannot be"),
    ({"kvm_pci_reservations": 4}, "kvm_pci_reservations cannot be “4”"),
    ({"boot_order": "cdrom"}, "there is no cdrom_image_path to boot from"),
    ({"boot_order": "floppy"}, "Invalid enum value 'floppy'"),
    ({"cdrom_image_path": "http://h/i.iso"}, "cdrom_image_path has to be a whole path"),
    ({"cdrom2_image_path": "/i"}, "cdrom2_image_path is set but cdrom_image_path is not"),
    ({"disk_type": "scsi-block"}, "Invalid enum value 'scsi-block'"),
    ({"nic_type": "ne2k_isa"}, "Invalid enum value 'ne2k_isa'"),
    ({"soundhw": "sb16"}, "Invalid enum value 'sb16'"),
    ({"usb_devices": "host:1:2"}, "usb_devices cannot have “host:1:2”"),
    ({"virtio_net_queues": 9}, "<= 8"),
    ({"virtio_net_queues": 0}, ">= 1"),
    ({"cpu_mask": "1-"}, "cpu_mask cannot have “1-”"),
    ({"cpu_mask": "3-1"}, "cpu_mask cannot have “3-1”"),
    ({"cpu_mask": "1,^1"}, "leaves no processor"),
    ({"cpu_cores": -1}, ">= 0"),
    ({"kvm_extra": "-name 'x"}, "a quote has no end"),
    ({"kvm_flag": "enabled", "accelerator": "tcg"}, "kvm_flag says KVM, and accelerator tcg"),
    ({"keymap": "../de"}, "keymap cannot be “../de”"),
    ({"spice_bind": "0.0.0.0"}, "without a spice_password_file"),
    ({"spice_bind": "br0", "spice_password_file": "/s"}, "it is no IP address"),
    ({"spice_bind": "::1", "spice_ip_version": 4}, "no address of IPv4"),
    ({"spice_ip_version": 5}, "spice_ip_version is 4 or 6, or 0 for any, not 5"),
    ({"firmware": "uefi", "kernel_path": "/k"}, "firmware=uefi boots no kernel_path"),
    ({"firmware": "secure-boot"}, "needs a machine_version of the kind pc-q35"),
    ({"mem_path": "huge"}, "mem_path has to be a whole path"),
    ({"vga": "rage"}, "Invalid enum value 'rage'"),
]


@pytest.mark.parametrize(("given", "said"), REFUSED, ids=[str(given) for given, _ in REFUSED])
def test_what_no_guest_is_given_is_refused_by_name(given: dict[str, Any], said: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=said):
        read(given)


def test_memory_is_counted_in_mib() -> None:
    assert ram.size(spec(memory=MiB(8)), Accelerator.KVM) == "8M"
