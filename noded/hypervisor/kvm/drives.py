"""CD drives, and the controller of what is SCSI.

The drives are the last on their bus, so that disks begin at its first place.
"""

from collections.abc import Iterator
from typing import Any

from common.model.kvm import KvmParameters
from common.model.kvm_words import BootOrder, DiskType, DriveType, ScsiController
from noded.hypervisor.kvm.bus import Fixed, fixed, ide_place, ide_places

SCSI_BUS = "scsi.0"
_CONTROLLERS = {
    ScsiController.LSI: "lsi53c895a",
    ScsiController.MEGASAS: "megasas",
    ScsiController.VIRTIO: "virtio-scsi-pci",
}
_LAST_LSI, _LAST_SCSI = 7, 17  # the former has no more addresses
_SCSI_DRIVES = (DriveType.SCSI, DriveType.SCSI_CD)
_SCSI_DISKS = (DiskType.SCSI, DiskType.SCSI_HD)


def images(parameters: KvmParameters) -> tuple[str, ...]:
    """Return the paths of what is in the drives."""
    return tuple(filter(None, (parameters.cdrom_image_path, parameters.cdrom2_image_path)))


def ide_drives(parameters: KvmParameters) -> tuple[str, ...]:
    return () if parameters.cdrom_disk_type in _SCSI_DRIVES else images(parameters)


def first_scsi_drive(parameters: KvmParameters) -> int:
    """Return the address of the first drive on the SCSI bus, below which all are free."""
    is_lsi = parameters.scsi_controller_type is ScsiController.LSI
    return _LAST_LSI - 1 if is_lsi else _LAST_SCSI - 1


def controller(parameters: KvmParameters, machine: str) -> Iterator[dict[str, Any]]:
    """Yield the controller of a guest that has anything SCSI."""
    has_drive = images(parameters) and parameters.cdrom_disk_type in _SCSI_DRIVES
    if has_drive or parameters.disk_type in _SCSI_DISKS:
        driver = _CONTROLLERS[parameters.scsi_controller_type]
        yield {"driver": driver, "id": "scsi", **fixed(machine, Fixed.SCSI)}


def block_node(number: int, descriptor: int) -> dict[str, Any]:
    """Return how QEMU reads the image in a drive, which it cannot write to."""
    return {
        "driver": "raw",
        "node-name": _node_name(number),
        "read-only": True,
        "file": {"driver": "file", "filename": f"/dev/fdset/{descriptor}", "locking": "off"},
    }


def drive(number: int, parameters: KvmParameters, machine: str) -> dict[str, Any]:
    """Return a CD drive; the first is booted from, if any is."""
    made: dict[str, Any] = {"drive": _node_name(number), "id": f"cd{number}"}
    if parameters.boot_order is BootOrder.CDROM and number == 0 and not parameters.kernel_path:
        made["bootindex"] = 0
    if parameters.cdrom_disk_type in _SCSI_DRIVES:
        place = {"bus": SCSI_BUS, "scsi-id": first_scsi_drive(parameters) + number}
        return {"driver": "scsi-cd", **made, **place}
    return {"driver": "ide-cd", **made, **ide_place(machine, ide_places(machine) - 1 - number)}


def _node_name(number: int) -> str:
    return f"cdrom{number}"
