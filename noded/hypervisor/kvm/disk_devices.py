"""What QEMU is told to put into the slots of a guest's machine that are for disks."""

from dataclasses import dataclass
from typing import Any

from common.model.disk import Mode
from common.model.hypervisors import (
    BootOrder,
    DiskAio,
    DiskCache,
    DiskDiscard,
    KvmParameters,
)
from common.noderpc.disks import DiskSpec
from noded.hypervisor.slots import SLOTS

_FIRST_DEVICE = 0x10  # on a PC's bus; QEMU counts display and nics from below
# The bus of a Q35 takes nothing while it runs, so each slot is behind a port of its own.
_PORTS_PER_DEVICE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A disk as QEMU gets it.

    ``fdset`` is the number of the set in which QEMU keeps the descriptor. Of a disk that it is
    started with, that is the number of the descriptor itself.
    """

    fdset: int
    is_block_device: bool
    direct: bool  # past the node's page cache


def ports(machine: str) -> tuple[dict[str, Any], ...]:
    """Return the devices that a machine needs for disks to come while it runs."""
    return tuple(_port(slot) for slot in range(SLOTS)) if _has_ports(machine) else ()


def block_node(disk: DiskSpec, slot: int, source: Source, parameters: KvmParameters) -> Any:
    """Return how QEMU opens what is in a slot."""
    cache = {"direct": source.direct}
    return {
        "driver": "raw",
        "node-name": node_name(slot),
        "read-only": disk.mode is Mode.READ_ONLY,
        "discard": "ignore" if parameters.disk_discard is DiskDiscard.IGNORE else "unmap",
        "cache": cache,
        "file": {
            "driver": "host_device" if source.is_block_device else "file",
            "filename": f"/dev/fdset/{source.fdset}",
            "aio": parameters.disk_aio if source.direct else DiskAio.THREADS,
            "cache": cache,
            # QEMU's own lock on the file: two nodes can never run one guest on one disk.
            "locking": "on",
        },
    }


def device(
    disk: DiskSpec, slot: int, parameters: KvmParameters, machine: str, *, is_first: bool = False
) -> dict[str, Any]:
    """Return the device that the guest sees in a slot; ``is_first``: it boots from that."""
    made: dict[str, Any] = {
        "driver": "virtio-blk-pci",
        "drive": node_name(slot),
        "id": device_name(slot),
        "serial": disk.id[:20],  # all that virtio has room for
        "write-cache": "off" if parameters.disk_cache is DiskCache.WRITETHROUGH else "on",
    }
    # A kernel that is booted directly comes first by itself, as number 0.
    if is_first and parameters.boot_order is BootOrder.DISK and not parameters.kernel_path:
        made["bootindex"] = 0
    if _has_ports(machine):
        return made | {"bus": _port_name(slot)}
    return made | {"bus": "pci.0", "addr": f"{_FIRST_DEVICE + slot:x}"}


def node_name(slot: int) -> str:
    return f"disk{slot}"


def device_name(slot: int) -> str:
    return f"virtio-disk{slot}"


def _has_ports(machine: str) -> bool:
    return "q35" in machine


def _port_name(slot: int) -> str:
    return f"port{slot}"


def _port(slot: int) -> dict[str, Any]:
    where, function = divmod(slot, _PORTS_PER_DEVICE)
    return {
        "driver": "pcie-root-port",
        "id": _port_name(slot),
        "bus": "pcie.0",
        "addr": f"{_FIRST_DEVICE + where:x}.{function}",
        "multifunction": True,
        "chassis": slot + 1,
        "slot": slot + 1,
        "io-reserve": 0,  # disks need none, and there is not enough for sixteen
    }
