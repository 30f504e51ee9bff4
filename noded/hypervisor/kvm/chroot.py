"""A QEMU that sees nothing of what is kept on its node, whoever may read it (``use_chroot``)."""

import os
from pathlib import Path

from common.errors import NodeFailure
from common.model.kvm import KvmParameters
from noded.hypervisor.kvm.chroot_commands import in_chroot
from noded.hypervisor.kvm.home import Home
from noded.hypervisor.kvm.user import ROOT

_SEEN = Path("/usr")  # in any case


def check_chroot(parameters: KvmParameters) -> None:
    """Refuse a root directory of its own where none can be made.

    Raises:
        NodeFailure: noded is not root.
    """
    if parameters.use_chroot and os.geteuid() != ROOT:
        raise NodeFailure("Its use_chroot needs a noded that is root.")


def rooted(
    home: Home, parameters: KvmParameters, program: str, command: tuple[str, ...]
) -> tuple[str, ...]:
    """Return what runs a guest's QEMU where it is to be run.

    Args:
        home: the guest's directory.
        parameters: the guest's.
        program: where its QEMU really is.
        command: which gives up its rights, and runs that.

    Raises:
        OSError: there is no place for a root directory.
    """
    if not parameters.use_chroot:
        return command
    home.root.mkdir()
    place = Path(program).parent
    others = [str(place)] if not place.is_relative_to(_SEEN) else []
    others += [parameters.mem_path] if parameters.mem_path else []
    return in_chroot(command, root=str(home.root), home=str(home.directory), others=tuple(others))
