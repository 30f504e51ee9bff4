"""Which process is a guest's QEMU, and which its TPM."""

import itertools
import os
from collections.abc import Sequence
from pathlib import Path

from common.names import InstanceId
from noded.system import process
from noded.system.process import Process


def find(pid_file: Path, instance: InstanceId, mark: str) -> Process | None:
    """Return the QEMU of ``instance`` whose number is in ``pid_file``, if it still runs.

    Args:
        pid_file: as ``Home.note`` writes it.
        instance: whose QEMU.
        mark: what the command line of none but this QEMU contains.
    """

    def is_it(arguments: Sequence[bytes]) -> bool:
        is_named = (b"-uuid", instance.encode()) in itertools.pairwise(arguments)
        return is_named and any(os.fsencode(mark) in argument for argument in arguments)

    return process.find(pid_file, is_it)


def find_tpm(pid_file: Path, mark: str) -> Process | None:
    """Return the TPM whose number is in ``pid_file``, if it still runs.

    Args:
        pid_file: as ``Home.note_tpm`` writes it.
        mark: what the command line of no other TPM contains.
    """
    return process.find(pid_file, lambda arguments: any(os.fsencode(mark) in a for a in arguments))
