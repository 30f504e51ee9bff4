"""What QEMU is told to put into the slots of a guest's machine that are for nics."""

from typing import Any

from common.model.hypervisors import BootOrder, KvmParameters, NicType
from common.noderpc.network import NicSpec
from noded.hypervisor.kvm.bus import nic_place

_MODELS = {
    NicType.PARAVIRTUAL: "virtio-net-pci",
    NicType.E1000: "e1000",
    NicType.RTL8139: "rtl8139",
}


def backend(slot: int, descriptor: str) -> dict[str, Any]:
    """Return how QEMU reaches the tap of what is in a slot.

    Args:
        slot: which.
        descriptor: of the tap: its number, or the name under which QEMU was given it.
    """
    # With its packets copied by QEMU: the kernel's vhost would be one more device to hand over.
    return {"type": "tap", "id": backend_name(slot), "fd": descriptor}


def device(
    nic: NicSpec, slot: int, parameters: KvmParameters, machine: str, *, is_first: bool = False
) -> dict[str, Any]:
    """Return the device that the guest sees in a slot; ``is_first``: it boots from that."""
    made: dict[str, Any] = {
        "driver": _MODELS[parameters.nic_type],
        "netdev": backend_name(slot),
        "id": device_name(slot),
        "mac": nic.mac,
    }
    boots = parameters.boot_order is BootOrder.NETWORK
    if is_first and boots and not parameters.kernel_path:
        made["bootindex"] = 0
    elif not boots:
        made["romfile"] = ""  # no network boot: saves the firmware a second
    return made | nic_place(machine, slot)


def backend_name(slot: int) -> str:
    return f"net{slot}"


def device_name(slot: int) -> str:
    return f"nic{slot}"
