"""Files that a guest's QEMU may read for a while, and nobody else but root."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from common.errors import NodeFailure

_SAME = -1


def lend(directory: Path, files: Mapping[str, bytes], user: int) -> Path:
    """Make a directory anew with these files in it, for a user to read; return it.

    Args:
        directory: below the guest's own, which its user can pass through.
        files: by their names.
        user: as whom QEMU runs, who is alone in the group of the same number.

    Raises:
        NodeFailure: they cannot be written.
    """
    take_back(directory)
    try:
        directory.mkdir(mode=0o700)  # nobody looks in before all is there
        for name, content in files.items():
            descriptor = os.open(directory / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                os.chown(descriptor, _SAME, user)
                os.fchmod(descriptor, 0o440)
        # To read only: what a guest could write here, it would fill the node's memory with.
        os.chown(directory, _SAME, user)
        directory.chmod(0o710)
    except OSError as error:
        take_back(directory)
        raise NodeFailure(f"Cannot lend a key to a guest: {error.strerror}.") from error
    return directory


def take_back(directory: Path) -> None:
    """Delete what was lent; harmless when there is nothing."""
    shutil.rmtree(directory, ignore_errors=True)
