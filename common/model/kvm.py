"""Parameters of ``kvm``, checked, what they answer, and which a guest keeps while it lives."""

from collections.abc import Mapping
from typing import Any, ClassVar

from common.model.kvm_checks import POOL, check
from common.model.kvm_declared import KvmDeclared
from common.model.kvm_words import POST_COPY, NicType, ways_of


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

    @staticmethod
    def has_display(parameters: Mapping[str, Any], /) -> bool:
        return bool(parameters.get("vnc_bind_address") or parameters.get("spice_bind"))

    @staticmethod
    def has_vnc(parameters: Mapping[str, Any], /) -> bool:
        return bool(parameters.get("vnc_bind_address"))

    @staticmethod
    def has_user_of_pool(parameters: Mapping[str, Any], /) -> bool:
        return parameters.get("security_model") == POOL

    @staticmethod
    def queues_of(parameters: Mapping[str, Any], /) -> int:
        if parameters.get("nic_type") != NicType.PARAVIRTUAL:
            return 1
        return int(parameters.get("virtio_net_queues", 1))

    @staticmethod
    def is_moved_by_post_copy(parameters: Mapping[str, Any], /) -> bool:
        return POST_COPY in ways_of(parameters.get("migration_caps", ""))

    @staticmethod
    def disk_of_tpm(parameters: Mapping[str, Any], /) -> str:
        disk = parameters.get("tpm")
        return disk if isinstance(disk, str) else ""  # an instance may have stored anything

    @staticmethod
    def with_disk_of_tpm(parameters: Mapping[str, Any], disk: str, /) -> dict[str, Any]:
        return {**parameters, "tpm": disk}
