"""Hypervisors and their parameters (``hvparams``), with Ganeti's names and meanings.

A parameter is declared here, and used by its driver on the node; command line, queries and checks
derive from the declaration. ``pinned`` names those that a running guest keeps when it moves,
whatever is configured by then and whatever its target would choose.
"""

from enum import StrEnum
from ipaddress import ip_address
from typing import Annotated, ClassVar

from msgspec import Meta

from common.errors import InvalidRequest
from common.messages import Order
from common.model.parameters import Layer, filled


class Accelerator(StrEnum):
    """How a guest's processor is run; ``auto`` takes KVM where it was seen working."""

    AUTO = "auto"
    KVM = "kvm"
    TCG = "tcg"


class BootOrder(StrEnum):
    DISK = "disk"
    NETWORK = "network"


class NicType(StrEnum):
    PARAVIRTUAL = "paravirtual"
    E1000 = "e1000"
    RTL8139 = "rtl8139"


class DiskAio(StrEnum):
    THREADS = "threads"
    NATIVE = "native"
    IO_URING = "io_uring"


class DiskCache(StrEnum):
    """Whether the node's page cache is used, and whether a write is done once it is there."""

    DEFAULT = "default"
    NONE = "none"
    WRITEBACK = "writeback"
    WRITETHROUGH = "writethrough"


class DiskDiscard(StrEnum):
    """Whether what a guest does not need any more is given back to whoever keeps its disks."""

    DEFAULT = "default"  # given back; Ganeti leaves that to QEMU, which does not
    IGNORE = "ignore"
    UNMAP = "unmap"


class MigrationMode(StrEnum):
    LIVE = "live"
    NON_LIVE = "non-live"  # the guest stands still meanwhile


# Ways in which QEMU can move a guest that we do not always have it use, or never switch off.
_MIGRATION_CAPS = frozenset({"auto-converge", "xbzrle"})

_PATHS = ("initrd_path", "kernel_path", "kvm_path", "vnc_password_file")


class KvmParameters(Order):
    """Those of ``kvm``; ``accelerator`` is ours."""

    pinned: ClassVar[frozenset[str]] = frozenset({"accelerator"})

    accelerator: Accelerator = Accelerator.AUTO
    acpi: bool = True
    boot_order: BootOrder = BootOrder.DISK
    cpu_type: str = ""
    disk_aio: DiskAio = DiskAio.THREADS
    disk_cache: DiskCache = DiskCache.DEFAULT
    disk_discard: DiskDiscard = DiskDiscard.DEFAULT
    initrd_path: str = ""
    kernel_args: str = "ro"
    kernel_path: str = ""
    kvm_path: str = "/usr/bin/qemu-system-x86_64"
    machine_version: str = ""
    migration_bandwidth: Annotated[int, Meta(ge=1, le=2**20)] = 32  # MiB/s
    migration_caps: str = ""  # with colons
    migration_downtime: Annotated[int, Meta(ge=1, le=2_000_000)] = 30  # ms; QEMU's own limit
    migration_mode: MigrationMode = MigrationMode.LIVE
    nic_type: NicType = NicType.PARAVIRTUAL
    root_path: str = "/dev/vda1"
    serial_console: bool = True
    serial_speed: Annotated[int, Meta(ge=1, le=2**30)] = 38400  # bits/s
    vga: str = ""
    vnc_bind_address: str = ""
    vnc_password_file: str = ""  # on the node

    def __post_init__(self) -> None:
        for name in _PATHS:
            if (path := getattr(self, name)) and not path.startswith("/"):
                raise ValueError(f"{name} has to be a whole path on the node, not “{path}”")
        if self.initrd_path and not self.kernel_path:
            raise ValueError("initrd_path is set but kernel_path is not; set both or neither")
        buffered = self.disk_cache not in (DiskCache.DEFAULT, DiskCache.NONE)
        if self.disk_aio is DiskAio.NATIVE and buffered:
            raise ValueError("disk_aio=native works with disk_cache none or default only")
        if unknown := set(filter(None, self.migration_caps.split(":"))) - _MIGRATION_CAPS:
            raise ValueError(
                f"migration_caps cannot have “{min(unknown)}”: there are "
                f"{', '.join(sorted(_MIGRATION_CAPS))}, with colons between"
            )
        self._check_display()

    def _check_display(self) -> None:
        address = self.vnc_bind_address
        if self.vnc_password_file:
            if address and not _is_address(address):
                raise ValueError(f"vnc_bind_address cannot be “{address}”: it is no IP address")
        elif address not in ("", "127.0.0.1", "::1"):
            raise ValueError(
                f"vnc_bind_address cannot be “{address}”: without a vnc_password_file a display "
                "has no password and is offered on 127.0.0.1 or ::1 only; use ssh to reach it"
            )


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return "%" not in text


class FakeParameters(Order):
    """Those of ``fake``, the hypervisor that only pretends."""

    pinned: ClassVar[frozenset[str]] = frozenset()

    migration_mode: MigrationMode = MigrationMode.LIVE


HYPERVISORS: dict[str, type[KvmParameters | FakeParameters]] = {
    "kvm": KvmParameters,
    "fake": FakeParameters,
}


def check_hypervisor(name: str) -> None:
    """Refuse a hypervisor that nobody knows.

    Raises:
        InvalidRequest: tells which there are.
    """
    if name not in HYPERVISORS:
        known = ", ".join(sorted(HYPERVISORS))
        raise InvalidRequest(f"There is no hypervisor “{name}”; known are {known}.")


def hypervisor_parameters(hypervisor: str, *layers: Layer, what: str) -> Order:
    """Return the filled parameters of ``hypervisor``; see ``parameters.filled``.

    Raises:
        InvalidRequest: no such hypervisor, or a parameter does not fit it.
    """
    check_hypervisor(hypervisor)
    return filled(HYPERVISORS[hypervisor], *layers, what=what)
