"""Parameters that are set for the cluster and refined for one object.

Each layer is a plain dict that holds only what it sets; ``filled`` lays them over one
another and over the defaults declared here, and checks the result. What a node receives
is always filled: nodes know no defaults.
"""

from enum import StrEnum
from typing import Any, TypeVar

from common.errors import InvalidRequest
from common.messages import Order, from_builtins
from common.names import MiB

P = TypeVar("P", bound=Order)
Layer = dict[str, Any]


class Accelerator(StrEnum):
    """How a guest's processor is run; ``auto`` takes KVM where it was seen working."""

    AUTO = "auto"
    KVM = "kvm"
    TCG = "tcg"


class Backend(Order):
    """``beparams``: what a guest is given."""

    maxmem: MiB = MiB(128)
    minmem: MiB = MiB(128)
    vcpus: int = 1
    auto_balance: bool = True
    spindle_use: int = 1
    always_failover: bool = False


class KvmParameters(Order):
    """``hvparams`` of ``kvm``, with Ganeti's names and meanings; ``accelerator`` is ours."""

    accelerator: Accelerator = Accelerator.AUTO
    acpi: bool = True
    boot_order: str = "disk"
    cpu_type: str = ""
    disk_aio: str = "threads"
    disk_cache: str = "default"
    initrd_path: str = ""
    kernel_args: str = "ro"
    kernel_path: str = ""
    kvm_path: str = "/usr/bin/qemu-system-x86_64"
    machine_version: str = ""
    migration_bandwidth: int = 32  # MiB/s
    migration_downtime: int = 30  # ms
    nic_type: str = "paravirtual"
    root_path: str = "/dev/vda1"
    serial_console: bool = True
    serial_speed: int = 38400
    vga: str = ""
    vnc_bind_address: str = ""


class FakeParameters(Order):
    """``hvparams`` of ``fake``, the hypervisor that only pretends."""

    migration_mode: str = "live"


class NicParameters(Order):
    """``nicparams``: how a nic is plugged in."""

    mode: str = "bridged"  # bridged, routed, openvswitch
    link: str = "br0"
    vlan: str = ""
    guarded: bool = True  # ours: the guest can send with the nic's own addresses only


class NodeParameters(Order):
    """``ndparams``: properties of a node, settable for the cluster, a group, or a node."""

    cpu_speed: float = 1.0
    exclusive_storage: bool = False
    oob_program: str = ""
    spindle_count: int = 1
    ssh_port: int = 22


HYPERVISORS: dict[str, type[Order]] = {"kvm": KvmParameters, "fake": FakeParameters}


def filled(kind: type[P], *layers: Layer, what: str) -> P:
    """Lay ``layers`` over the defaults of ``kind``, later ones winning.

    Args:
        kind: the parameter class.
        layers: from the most general to the most specific.
        what: for the error message: "the hypervisor parameters of web1".

    Raises:
        InvalidRequest: a parameter is unknown or of the wrong type.
    """
    merged: Layer = {}
    for layer in layers:
        merged |= layer
    return from_builtins(merged, kind, what=what)


def hypervisor_parameters(hypervisor: str, *layers: Layer, what: str) -> Order:
    """Return the filled parameters of ``hypervisor``.

    Raises:
        InvalidRequest: no such hypervisor, or a parameter does not fit it.
    """
    if hypervisor not in HYPERVISORS:
        known = ", ".join(sorted(HYPERVISORS))
        raise InvalidRequest(f"There is no hypervisor “{hypervisor}”; known are {known}.")
    return filled(HYPERVISORS[hypervisor], *layers, what=what)
