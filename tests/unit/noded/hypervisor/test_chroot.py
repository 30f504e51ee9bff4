"""What a QEMU in a root directory of its own finds there besides what all do."""

from pathlib import Path
from typing import Any

import pytest

from common.model.kvm import KvmParameters
from common.names import InstanceId
from noded.hypervisor.kvm.chroot import rooted
from noded.hypervisor.kvm.home import Home


@pytest.mark.parametrize(
    ("program", "given", "others"),
    [
        ("/usr/bin/qemu-system-x86_64", {}, ()),
        ("/usr/bin/qemu-system-x86_64", {"mem_path": "/dev/hugepages"}, ("/dev/hugepages",)),
        ("/opt/qemu/bin/qemu", {"mem_path": "/huge"}, ("/opt/qemu/bin", "/huge")),
    ],
)
def test_it_finds_its_program_and_its_huge_pages(
    tmp_path: Path, program: str, given: dict[str, Any], others: tuple[str, ...]
) -> None:
    home = Home(tmp_path, InstanceId("web1"))
    home.directory.mkdir()
    command = rooted(home, KvmParameters(use_chroot=True, **given), program, ("setpriv", program))
    (start,) = (i for i, word in enumerate(command) if word == str(home.root))
    told = (str(home.directory), str(len(others)), *others, "setpriv", program)
    assert command[start + 1 :] == told


def test_it_is_in_the_nodes_own_unless_it_is_asked_for(tmp_path: Path) -> None:
    home = Home(tmp_path, InstanceId("web1"))
    assert rooted(home, KvmParameters(), "/usr/bin/qemu", ("setpriv",)) == ("setpriv",)
