"""Where devices are in a guest's machine.

Each has an address of its own, that nothing beside it changes: a guest moves only to a machine with
the same devices at the same addresses. What comes and goes while it runs has slots. The bus of a PC
takes devices as it is; that of a Q35 takes none while it runs, so there each slot is behind a port.
"""

from enum import IntEnum
from typing import Any

from noded.hypervisor.slots import DISK_SLOTS, NIC_SLOTS

_PORTS_PER_DEVICE = 8
_FIRST_NIC, _FIRST_DISK = 0x3, 0x10  # below are the machine's own bridges and its display
_FIRST_NIC_PORT = 0x12


class Fixed(IntEnum):
    """Addresses of what stays as long as the guest lives."""

    BALLOON = 0xB
    RNG = 0xC
    SERIAL = 0xD
    SCSI = 0xE
    SOUND = 0xF


def fixed(machine: str, address: Fixed) -> dict[str, str]:
    """Return the place of a device that stays."""
    return {"bus": "pcie.0" if _has_ports(machine) else "pci.0", "addr": f"{address:x}"}


def disk_place(machine: str, slot: int) -> dict[str, str]:
    return _slot(machine, "port", slot, _FIRST_DISK)


def nic_place(machine: str, slot: int) -> dict[str, str]:
    return _slot(machine, "nicport", slot, _FIRST_NIC)


def ide_place(machine: str, number: int) -> dict[str, Any]:
    """Return a place on the bus for IDE: of four on a PC, of six on a Q35."""
    if _has_ports(machine):
        return {"bus": f"ide.{number}"}
    return {"bus": f"ide.{number // 2}", "unit": number % 2}


def ide_places(machine: str) -> int:
    return 6 if _has_ports(machine) else 4


def ports(machine: str) -> tuple[dict[str, Any], ...]:
    """Return the devices that a machine needs for others to come while it runs."""
    if not _has_ports(machine):
        return ()
    disks = (_port("port", slot, _FIRST_DISK, slot + 1) for slot in range(DISK_SLOTS))
    nics = (
        _port("nicport", slot, _FIRST_NIC_PORT, DISK_SLOTS + slot + 1) for slot in range(NIC_SLOTS)
    )
    return (*disks, *nics)


def _has_ports(machine: str) -> bool:
    return "q35" in machine


def _slot(machine: str, port: str, slot: int, first: int) -> dict[str, str]:
    if _has_ports(machine):
        return {"bus": f"{port}{slot}"}
    return {"bus": "pci.0", "addr": f"{first + slot:x}"}


def _port(name: str, slot: int, first: int, number: int) -> dict[str, Any]:
    where, function = divmod(slot, _PORTS_PER_DEVICE)
    return {
        "driver": "pcie-root-port",
        "id": f"{name}{slot}",
        "bus": "pcie.0",
        "addr": f"{first + where:x}.{function}",
        "multifunction": True,
        "chassis": number,
        "slot": number,
        "io-reserve": 0,  # nothing behind them needs any, and there is not enough for all
    }
