"""What QEMU is told to put into the slots of a guest's machine that are for disks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from common.errors import Conflict
from common.model.backing import Qcow2Backing
from common.model.disk import Mode
from common.model.kvm import KvmParameters
from common.model.kvm_words import BootOrder, DiskAio, DiskCache, DiskDiscard, DiskType
from common.noderpc.disks import DiskSpec
from noded.hypervisor.kvm.bus import disk_place, ide_place, ide_places
from noded.hypervisor.kvm.drives import SCSI_BUS, first_scsi_drive, ide_drives
from noded.hypervisor.slots import DISK_SLOTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A disk as QEMU gets it.

    ``fdset`` is the number of the set in which QEMU keeps the descriptor. Of a disk that it is
    started with, that is the number of the descriptor itself.
    """

    fdset: int
    is_block_device: bool
    direct: bool  # past the node's page cache


def block_node(disk: DiskSpec, slot: int, source: Source, parameters: KvmParameters) -> Any:
    """Return how QEMU opens what is in a slot.

    It is told the format, whatever the disk begins with: a guest can write there what it likes.
    """
    cache = {"direct": source.direct}
    is_qcow2 = isinstance(disk.backing, Qcow2Backing)
    return {
        **({"driver": "qcow2", "backing": None} if is_qcow2 else {"driver": "raw"}),
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
    """Return the device that the guest sees in a slot; ``is_first``: it boots from that.

    Raises:
        Conflict: devices of this type have no such slot.
    """
    _check_slot(slot, parameters, machine)
    driver, place = _TYPES[parameters.disk_type](slot, machine)
    made: dict[str, Any] = {
        "driver": driver,
        "drive": node_name(slot),
        "id": device_name(slot),
        "serial": disk.id[:20],  # all that virtio has room for
        "write-cache": "off" if parameters.disk_cache is DiskCache.WRITETHROUGH else "on",
    }
    # A kernel that is booted directly comes first by itself, as number 0.
    if is_first and parameters.boot_order is BootOrder.DISK and not parameters.kernel_path:
        made["bootindex"] = 0
    return made | place


def _virtio(slot: int, machine: str) -> tuple[str, dict[str, Any]]:
    return "virtio-blk-pci", disk_place(machine, slot)


def _ide(slot: int, machine: str) -> tuple[str, dict[str, Any]]:
    return "ide-hd", ide_place(machine, slot)


def _scsi(slot: int, _: str) -> tuple[str, dict[str, Any]]:
    return "scsi-hd", {"bus": SCSI_BUS, "scsi-id": slot}


_TYPES: dict[DiskType, Callable[[int, str], tuple[str, dict[str, Any]]]] = {
    DiskType.PARAVIRTUAL: _virtio,
    DiskType.IDE: _ide,
    DiskType.SCSI: _scsi,
    DiskType.SCSI_HD: _scsi,
}


def _check_slot(slot: int, parameters: KvmParameters, machine: str) -> None:
    most = DISK_SLOTS
    if parameters.disk_type is DiskType.IDE:
        most = ide_places(machine) - len(ide_drives(parameters))
    elif parameters.disk_type is not DiskType.PARAVIRTUAL:
        most = min(first_scsi_drive(parameters), DISK_SLOTS)
    if slot >= most:
        raise Conflict(
            f"A guest has places for {most} disks of the type {parameters.disk_type}; "
            "disk_type=paravirtual has more."
        )


def node_name(slot: int) -> str:
    return f"disk{slot}"


def device_name(slot: int) -> str:
    return f"virtio-disk{slot}"
