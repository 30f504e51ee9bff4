"""A QEMU that sees nothing of what is kept on its node, whoever may read it (``use_chroot``)."""

import os
from pathlib import Path

from common.errors import NodeFailure
from common.model.kvm import KvmParameters
from noded.hypervisor.kvm.chroot_commands import in_chroot
from noded.hypervisor.kvm.home import Home
from noded.hypervisor.kvm.user import ROOT

_SEEN = Path("/usr")


def check_chroot(parameters: KvmParameters, program: str) -> None:
    """Refuse a root directory of its own where none can be made, or its QEMU would not be there.

    Args:
        parameters: the guest's.
        program: where its QEMU really is.

    Raises:
        NodeFailure: noded is not root, or that is elsewhere.
    """
    if not parameters.use_chroot:
        return
    if os.geteuid() != ROOT:
        raise NodeFailure("Its use_chroot needs a noded that is root.")
    if not Path(program).is_relative_to(_SEEN):
        raise NodeFailure(
            f"Its use_chroot needs a QEMU that is below {_SEEN}, and {program} (kvm_path) is not.",
            path=program,
        )


def rooted(home: Home, parameters: KvmParameters, command: tuple[str, ...]) -> tuple[str, ...]:
    """Return what runs a guest's QEMU where it is to be run.

    Args:
        home: the guest's directory.
        parameters: the guest's.
        command: which gives up its rights, and runs its QEMU.

    Raises:
        OSError: there is no place for a root directory.
    """
    if not parameters.use_chroot:
        return command
    home.root.mkdir()
    return in_chroot(command, root=str(home.root), home=str(home.directory))
