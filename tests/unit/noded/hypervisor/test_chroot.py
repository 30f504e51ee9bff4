"""Which QEMU may have a root directory of its own, and what it is given there."""

import os
from pathlib import Path

import pytest

from common.errors import NodeFailure
from common.model.kvm import KvmParameters
from common.names import InstanceId
from noded.hypervisor.kvm.chroot import check_chroot, rooted
from noded.hypervisor.kvm.home import Home
from noded.hypervisor.kvm.user import ROOT

ASKED = KvmParameters(use_chroot=True, mem_path="/dev/hugepages")
QEMU = "/usr/bin/qemu-system-x86_64"


def test_it_is_given_nothing_but_its_guests_directory(tmp_path: Path) -> None:
    home = Home(tmp_path, InstanceId("web1"))
    home.directory.mkdir()
    command = rooted(home, ASKED, ("setpriv", QEMU))
    (start,) = (i for i, word in enumerate(command) if word == str(home.root))
    assert command[start + 1 :] == (str(home.directory), "setpriv", QEMU)


def test_it_is_in_the_nodes_own_unless_it_is_asked_for(tmp_path: Path) -> None:
    home = Home(tmp_path, InstanceId("web1"))
    assert rooted(home, KvmParameters(), ("setpriv",)) == ("setpriv",)


def test_a_program_that_is_not_there_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: ROOT)
    check_chroot(ASKED, QEMU)
    check_chroot(KvmParameters(), "/opt/qemu/bin/qemu")
    with pytest.raises(NodeFailure, match="/opt/qemu/bin/qemu"):
        check_chroot(ASKED, "/opt/qemu/bin/qemu")
