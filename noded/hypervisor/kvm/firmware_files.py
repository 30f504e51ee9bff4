"""UEFI firmware, as Debian's package ovmf has it."""

import os
from pathlib import Path

from common.errors import NodeFailure
from common.model.kvm_words import Firmware
from noded.hypervisor.kvm.firmware import Opened

DIRECTORY = Path("/usr/share/OVMF")
_FILES = {
    Firmware.UEFI: ("OVMF_CODE_4M.fd", "OVMF_VARS_4M.fd"),
    Firmware.SECURE_BOOT: ("OVMF_CODE_4M.secboot.fd", "OVMF_VARS_4M.ms.fd"),
}


def check_firmware(firmware: Firmware) -> None:
    """Refuse a firmware that this node does not have.

    Raises:
        NodeFailure: says which package to install.
    """
    for name in _FILES.get(firmware, ()):
        if not (DIRECTORY / name).is_file():
            raise NodeFailure(
                f"It wants firmware={firmware}, and this node has no {DIRECTORY / name}; install "
                "the package ovmf.",
                path=str(DIRECTORY / name),
            )


def open_firmware(firmware: Firmware) -> Opened | None:
    """Open a firmware, with variables of its own; None for the BIOS, which QEMU has.

    Raises:
        NodeFailure: this node does not have it.
        OSError: it cannot be read.
    """
    if firmware is Firmware.BIOS:
        return None
    check_firmware(firmware)
    code, template = (DIRECTORY / name for name in _FILES[firmware])
    variables = os.memfd_create("variables", os.MFD_CLOEXEC)
    try:
        os.write(variables, template.read_bytes())
        return Opened(os.open(code, os.O_RDONLY | os.O_CLOEXEC), variables)
    except OSError:
        os.close(variables)
        raise
