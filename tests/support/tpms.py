"""Guests with a TPM, and what is left of one on this machine."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.noderpc.instances import GuestSpec
from noded.hypervisor.kvm.tpm_commands import PROGRAM
from noded.hypervisor.kvm.user import ROOT
from noded.system.process import Process
from tests.support.hypervisors import KvmRig, has_qemu

NEEDED = [
    pytest.mark.skipif(not has_qemu, reason="QEMU IS NOT INSTALLED: no TPM was tested"),
    pytest.mark.skipif(
        shutil.which(PROGRAM) is None, reason="SWTPM IS NOT INSTALLED: no TPM was tested"
    ),
    pytest.mark.skipif(os.geteuid() != ROOT, reason="NOT ROOT: no TPM can be given a disk"),
]


def trusted(rig: KvmRig, number: int = 1) -> GuestSpec:
    """Describe web1 with a TPM that keeps its state on disk ``number``."""
    disks = (rig.disk(0), rig.disk(number))
    return rig.spec(disks=disks, parameters={"tpm": disks[1].id})


def emulator(rig: KvmRig, node: str = "alpha") -> Process | None:
    return rig.home(node).tpm_process()


def has_none(rig: KvmRig, node: str = "alpha") -> bool:
    found = emulator(rig, node)
    if found is None:
        return True
    with found:
        return found.has_ended


def loops(rig: KvmRig) -> Iterator[str]:
    """Yield the files of the rig that a loop device is made of."""
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        name = backing.read_text().strip()
        if name.startswith(str(rig.root)):
            yield name
