"""What QEMU is told to put into the slots of a guest's machine that are for nics."""

from typing import Any, NamedTuple

from common.model.kvm import KvmParameters
from common.model.kvm_words import BootOrder, NicType
from common.noderpc.network import NicSpec
from noded.hypervisor.kvm.bus import nic_place

_MODELS = {
    NicType.PARAVIRTUAL: "virtio-net-pci",
    NicType.E1000: "e1000",
    NicType.I82551: "i82551",
    NicType.I82557B: "i82557b",
    NicType.I82559ER: "i82559er",
    NicType.NE2K_PCI: "ne2k_pci",
    NicType.PCNET: "pcnet",
    NicType.RTL8139: "rtl8139",
}


class Named(NamedTuple):
    """What QEMU calls the descriptors of a tap: by their numbers, or as they were lent to it."""

    queues: tuple[str, ...]
    vhosts: tuple[str, ...] = ()


class Tap(NamedTuple):
    """Descriptors of a tap: one for each queue, and of the kernel's vhost, if it copies packets."""

    queues: tuple[int, ...]
    vhosts: tuple[int, ...] = ()

    def named(self) -> Named:
        return Named(tuple(map(str, self.queues)), tuple(map(str, self.vhosts)))


def backend(slot: int, tap: Named) -> dict[str, Any]:
    """Return how QEMU reaches the tap of what is in a slot."""
    several = len(tap.queues) > 1
    made: dict[str, Any] = {"type": "tap", "id": backend_name(slot)}
    made["fds" if several else "fd"] = ":".join(tap.queues)
    if tap.vhosts:
        made["vhostfds" if several else "vhostfd"] = ":".join(tap.vhosts)
        made["vhost"] = True
    return made


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
    if nic.queues > 1:
        # Of interrupts, two for each queue, and two for the card itself.
        made |= {"mq": True, "vectors": 2 * nic.queues + 2}
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
