"""A guest's TPM: the disk on which it keeps its state, and the process that is it.

It ends by itself when its QEMU does, however that ends, once QEMU has come up: what swtpm watches
is a second line, which QEMU gives it by the first. Any other that is left has to be killed, so
whoever starts a guest clears away first.
"""

import os
import shutil
import socket
import stat
from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace

from common.errors import InvalidRequest, NodeFailure
from common.model.backing import Qcow2Backing
from common.model.disk import Mode
from common.model.kvm import KvmParameters
from common.noderpc.disks import DiskSpec
from common.noderpc.instances import GuestSpec
from noded.hypervisor.kvm.chroot_commands import with_device
from noded.hypervisor.kvm.home import Home, Record
from noded.hypervisor.kvm.loop_device import open_loop
from noded.hypervisor.kvm.tpm_commands import PROGRAM, TpmLine, emulator
from noded.hypervisor.kvm.user import ROOT, run_as

_MAGIC = b"nilmptws"  # with which a state begins
_LOOKED_AT = 128 << 10  # bytes, in which file systems and tables of partitions tell of themselves


class Tpm(NamedTuple):
    """A TPM to be started.

    Attributes:
        command: what runs it.
        handed: descriptors that it gets.
        line: what its QEMU gets.
    """

    command: tuple[str, ...]
    handed: tuple[int, ...]
    line: TpmLine


def find_state(guest: GuestSpec, parameters: KvmParameters) -> DiskSpec | None:
    """Return the disk of a guest's TPM; None if it has no TPM.

    Raises:
        InvalidRequest: it has none of this name.
    """
    if not parameters.tpm:
        return None
    for disk in guest.disks:
        if disk.id == parameters.tpm:
            return disk
    raise InvalidRequest(
        f"It has no disk “{parameters.tpm}”, on which its TPM is to keep its state (tpm)."
    )


def with_drives(guest: GuestSpec, parameters: KvmParameters) -> GuestSpec:
    """Return a guest with the disks that it sees: all but that of its TPM."""
    seen = tuple(disk for disk in guest.disks if disk.id != parameters.tpm)
    return replace(guest, disks=seen)


def check_tpm(guest: GuestSpec, parameters: KvmParameters) -> None:
    """Refuse a TPM that cannot be had here.

    Raises:
        InvalidRequest: the guest has no such disk, or a TPM cannot write to it.
        NodeFailure: the program is missing, or noded may not start it.
    """
    state = find_state(guest, parameters)
    if state is None:
        return
    if state.mode is Mode.READ_ONLY or isinstance(state.backing, Qcow2Backing):
        raise InvalidRequest(
            "The disk of its TPM (tpm) is read-only, or an image of QEMU's format: a TPM can keep "
            "no state there."
        )
    _find_program()
    if os.geteuid() != ROOT:
        raise NodeFailure("It has a TPM, and noded, which is not root, can give it no disk.")


def prepare(
    home: Home,
    record: Record,
    state: DiskSpec,
    open_disk: Callable[[DiskSpec], int],
    keep: Callable[[int], int],
) -> Tpm:
    """Open what a TPM needs, and say how it is started.

    Args:
        home: the guest's directory.
        record: how it is to run.
        state: the disk of the TPM.
        open_disk: opens it.
        keep: has a descriptor closed here some time later.

    Raises:
        InvalidRequest: the disk holds something else.
        NodeFailure: the disk cannot be opened.
        OSError: there is no place for a name of it.
    """
    disk = keep(open_disk(state))
    if not record.receives:  # whose state comes with its memory, and whose disk is in use so far
        _check_content(disk)
    device = _device_of(disk, keep)
    found = os.fstat(device).st_rdev
    qemus, own = (keep(end.detach()) for end in socket.socketpair())
    home.tpm.mkdir()
    directory = str(home.tpm)
    command = with_device(
        run_as(record.user, (), emulator(_find_program(), line=own, directory=directory)),
        root=directory,
        user=record.user,
        device=(os.major(found), os.minor(found)),
    )
    return Tpm(command, (own, device), TpmLine(qemus, device))


def _check_content(disk: int) -> None:
    """Refuse what is neither empty nor the state of a TPM: swtpm would write over it.

    Source: swtpm_nvstore_linear.h of swtpm 0.7.1.
    """
    start = os.pread(disk, _LOOKED_AT, 0)
    if any(start) and not start.startswith(_MAGIC):
        raise InvalidRequest(
            "The disk of its TPM (tpm) holds something else, which the TPM would overwrite. Name "
            f"another disk, or write zeros to the first {_LOOKED_AT >> 10} KiB of this one."
        )


def _device_of(disk: int, keep: Callable[[int], int]) -> int:
    """Return the block device that a disk is; of a file, one over it."""
    return disk if stat.S_ISBLK(os.fstat(disk).st_mode) else keep(open_loop(disk))


def _find_program() -> str:
    found = shutil.which(PROGRAM)
    if found is None:
        raise NodeFailure(
            f"It has a TPM, and there is no program {PROGRAM} here; install it (Debian: swtpm).",
            path=PROGRAM,
        )
    return found
