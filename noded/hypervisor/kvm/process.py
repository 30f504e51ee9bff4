"""Which process is a guest's QEMU."""

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
