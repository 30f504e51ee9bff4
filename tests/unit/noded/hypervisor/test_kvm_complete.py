"""Each of Ganeti's parameters of KVM changes QEMU's command line, acts elsewhere, or is refused."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from common.model.kvm import KvmParameters
from tests.unit.noded.hypervisor.test_kvm_commands import argv

_TESTS = Path(__file__).parents[3]
_FIELDS = _TESTS / "unit" / "queries" / "fields.json"  # recorded; without what migrations alone use
OF_OTHER_HYPERVISORS = {
    "blockdev_prefix",
    "bootloader_args",
    "bootloader_path",
    "cpu_cap",
    "cpu_weight",
    "cpuid",
    "device_model",
    "devices",
    "drop_capabilities",
    "extra_cgroups",
    "extra_config",
    "init_script",
    "num_ttys",
    "pae",
    "pci_pass",
    "startup_timeout",
    "use_bootloader",
    "vif_script",
    "vif_type",
    "viridian",
}
REFUSED: dict[str, Any] = {
    "floppy_image_path": "/f",
    "kvm_pci_reservations": 4,
    "vnet_hdr": False,
}
# Not on the command line of this guest: the file of tests that sets it.
ELSEWHERE = {
    "cpu_mask": "contract/test_kvm_machines.py",
    "kvm_flag": "unit/noded/hypervisor/test_kvm_parameters.py",
    "kvm_path": "contract/test_guest_privileges.py",
    "mem_path": "contract/test_kvm_machines.py",
    "migration_caps": "contract/test_guest_moves_kvm.py",
    "migration_downtime": "contract/test_guest_moves_kvm.py",
    "security_domain": "contract/test_chroot.py",
    "security_model": "contract/test_guest_privileges.py",
    "use_chroot": "contract/test_chroot.py",
    "virtio_net_queues": "unit/noded/hypervisor/test_kvm_parameters.py",
}
VNC = {"vnc_bind_address": "127.0.0.1"}
CERTIFIED = {**VNC, "vnc_tls": True, "vnc_x509_path": "/x509"}
SPICE = {"spice_bind": "127.0.0.1"}
CD = {"cdrom_image_path": "/1.iso"}
SCSI = {"disk_type": "scsi"}
VALUES: dict[str, tuple[dict[str, Any], Any]] = {
    "cdrom_disk_type": (CD, "scsi"),
    "cdrom2_image_path": (CD, "/2.iso"),
    "disk_cache": ({}, "writethrough"),
    "keymap": (VNC, "de"),
    "scsi_controller_type": (SCSI, "megasas"),
    "spice_bind": ({}, "127.0.0.1"),
    "spice_ip_version": (SPICE, 4),
    "spice_tls_ciphers": ({**SPICE, "spice_use_tls": True}, "HIGH:!3DES"),
    "usb_devices": ({}, "keyboard"),
    "vnc_bind_address": ({}, "127.0.0.1"),
    "vnc_x509_path": ({**VNC, "vnc_tls": True}, "/x509"),
    "vnc_x509_verify": (CERTIFIED, True),
}
BASES: tuple[dict[str, Any], ...] = (
    {},
    VNC,
    SPICE,
    CD,
    {"kernel_path": "/k"},
)


def _of_ganeti() -> list[str]:
    names = set(re.findall(r'"hv/(\w+)":', _FIELDS.read_text()))
    return sorted(names - OF_OTHER_HYPERVISORS)


def _other(name: str) -> Any:
    default = getattr(KvmParameters(), name)
    if isinstance(default, bool):
        return not default
    if isinstance(default, int):
        return default + 1
    kind = type(default)
    return "/x" if kind is str else next(word for word in kind if word is not default)


def _read(given: dict[str, Any]) -> KvmParameters:
    return msgspec.convert(given, KvmParameters)


@pytest.mark.parametrize("name", _of_ganeti())
def test_each_of_ganetis_parameters_is_obeyed_or_refused_by_name(name: str) -> None:
    if name in REFUSED:
        with pytest.raises(msgspec.ValidationError, match=f"{name} cannot be .*: .+"):
            _read({name: REFUSED[name]})
    elif name in ELSEWHERE:
        assert re.search(rf"\b{name}\b", (_TESTS / ELSEWHERE[name]).read_text())
    elif name in VALUES:
        base, value = VALUES[name]
        assert argv(_read(base)) != argv(_read({**base, name: value}))
    else:
        assert any(argv(_read(b)) != argv(_read({**b, name: _other(name)})) for b in _fitting(name))


def _fitting(name: str) -> list[dict[str, Any]]:
    if name == "initrd_path":
        return [{"kernel_path": "/k"}]
    return [CD] if name == "boot_order" else list(BASES)
