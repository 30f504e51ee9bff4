"""The disk of an instance on which its TPM keeps its state, and which its guest does not see."""

from collections.abc import Sequence

from common.errors import InvalidRequest
from common.model.disk import Disk, Mode


def find_state(wanted: str, disks: Sequence[Disk]) -> Disk | None:
    """Return the disk that the hypervisor parameter ``tpm`` tells by its name or UUID.

    None of two that have this name: on the wrong one a TPM would overwrite what is there.
    """
    found = _called(wanted, disks)
    return found[0] if len(found) == 1 else None


def problem_of_state(wanted: str, disks: Sequence[Disk]) -> str:
    """Say why a TPM cannot keep its state where ``tpm`` tells it to; "" if it can, or is none."""
    if not wanted:
        return ""
    called = _called(wanted, disks)
    if not called:
        return f"none of its disks has this name (--disk add:size=4m,name={wanted} adds one)"
    if len(called) > 1:
        return "two of its disks have this name (--disk NUMBER:modify,name=OTHER renames one)"
    (found,) = called
    if found.mode is Mode.READ_ONLY:
        return "that disk may only be read"
    if found.backing.has_own_format:
        return "that disk is an image of QEMU's format, which a TPM cannot read"
    return ""


def check_tpm(name: str, wanted: str, disks: Sequence[Disk]) -> None:
    """Refuse a TPM that cannot keep its state where it is told to.

    Raises:
        InvalidRequest: says why.
    """
    if problem := problem_of_state(wanted, disks):
        raise InvalidRequest(complaint(name, wanted, problem))


def complaint(name: str, wanted: str, problem: str) -> str:
    """Put into a sentence why the TPM of an instance cannot keep its state on a disk."""
    return f"The TPM of {name} cannot keep its state on “{wanted}”: {problem}."


def _called(wanted: str, disks: Sequence[Disk]) -> tuple[Disk, ...]:
    return tuple(disk for disk in disks if wanted and wanted in (disk.name, disk.uuid))
