"""Lending the key of one move to a guest's QEMU, for as long as the move takes."""

import os
import shutil
from pathlib import Path

from common.errors import NodeFailure
from noded.hypervisor.kvm.home import Home

USER = "gantry"  # TLS with a key has a name for it

_SAME = -1


def lend(home: Home, secret: str) -> Path:
    """Put the key where the guest's user, and nobody else, can read it; return the directory.

    QEMU as a server reads it when the other side has connected, so it stays until ``forget``.

    Raises:
        NodeFailure: it cannot be written.
    """
    record = home.record()
    user = record.user if record else os.geteuid()
    forget(home)
    try:
        home.tls.mkdir(mode=0o700)  # nobody looks in before all is there
        descriptor = os.open(home.tls / "keys.psk", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{USER}:{secret}\n")
            os.chown(descriptor, _SAME, user)
            os.fchmod(descriptor, 0o440)
        # To read only: what a guest could write here, it would fill the node's memory with.
        os.chown(home.tls, _SAME, user)
        home.tls.chmod(0o710)
    except OSError as error:
        forget(home)
        raise NodeFailure(f"Cannot lend a key to a guest: {error.strerror}.") from error
    return home.tls


def forget(home: Home) -> None:
    """Take the key away again; harmless when there is none."""
    shutil.rmtree(home.tls, ignore_errors=True)
