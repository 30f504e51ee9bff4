"""Lending this node's certificate to a guest's QEMU, for the moment in which it loads it."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from common.errors import NodeFailure
from common.tls.context import AUTHORITY, CERTIFICATE, KEY
from noded.hypervisor.kvm.home import Home

_SAME = -1


@contextmanager
def lent(home: Home, identity: Path, endpoint: str) -> Iterator[Path]:
    """Put key and certificates where the guest's user, and nobody else, can read them.

    Args:
        home: the guest's.
        identity: where this node's are.
        endpoint: "server" or "client", which QEMU's names for the files contain.

    Raises:
        NodeFailure: they cannot be copied.
    """
    record = home.record()
    user = record.user if record else os.geteuid()
    files = {
        AUTHORITY: "ca-cert.pem",
        CERTIFICATE: f"{endpoint}-cert.pem",
        KEY: f"{endpoint}-key.pem",
    }
    try:
        _forget(home.tls)
        home.tls.mkdir(mode=0o700)  # nobody looks in before all is there
        for source, name in files.items():
            descriptor = os.open(home.tls / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as copy:
                copy.write((identity / source).read_bytes())
                os.chown(descriptor, _SAME, user)
                os.fchmod(descriptor, 0o440)
        # To read only: what a guest could write here, it would fill the node's memory with.
        os.chown(home.tls, _SAME, user)
        home.tls.chmod(0o710)
    except OSError as error:
        _forget(home.tls)
        raise NodeFailure(
            f"Cannot lend this node's certificate to a guest: {error.strerror}."
        ) from error
    try:
        yield home.tls
    finally:
        _forget(home.tls)


def _forget(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
