"""Parameters of ``kvm``, checked, and which of them a guest keeps while it lives."""

from typing import ClassVar

from common.model.kvm_checks import check
from common.model.kvm_declared import KvmDeclared


class KvmParameters(KvmDeclared):
    # What makes the machine, which a guest keeps as long as it lives.
    pinned: ClassVar[frozenset[str]] = frozenset({
        "accelerator", "acpi", "boot_order", "cdrom_disk_type", "cpu_cores", "cpu_sockets",
        "cpu_threads", "cpu_type", "disk_type", "firmware", "kvm_flag", "machine_version",
        "mem_path", "nic_type", "rng", "scsi_controller_type", "serial_console", "soundhw",
        "usb_mouse", "use_guest_agent", "vga", "virtio_net_queues",
    })  # fmt: skip
    # Likewise, but a node is not believed what they are: a guest with another value is not moved.
    compared: ClassVar[frozenset[str]] = frozenset({
        "cdrom2_image_path", "cdrom_image_path", "initrd_path", "kernel_path", "kvm_extra",
        "spice_bind", "tpm", "usb_devices",
    })  # fmt: skip
    newer: ClassVar[frozenset[str]] = frozenset({"tpm"})

    def __post_init__(self) -> None:
        check(self)
