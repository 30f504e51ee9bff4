"""Which disk is that of a TPM."""

from common.model.backing import FileBacking
from common.model.disk import Disk
from common.names import DiskId, MiB
from coordinator.disks.tpm import find_state


def disk(uuid: str, name: str) -> Disk:
    backing = FileBacking(path=f"/srv/{uuid}", shared=False)
    return Disk(uuid=DiskId(uuid), size=MiB(4), backing=backing, name=name)


def test_a_tpm_has_none_of_two_disks_of_one_name_and_one_by_its_uuid() -> None:
    one, other, third = disk("1", "state"), disk("2", "state"), disk("3", "data")
    assert find_state("state", (one, third)) == one
    assert find_state("state", (one, other, third)) is None
    assert find_state("2", (one, other, third)) == other
    assert find_state("", (one, disk("4", ""))) is None
