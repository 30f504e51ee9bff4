"""What a guest's directory says without a look at the node's processes."""

from pathlib import Path

import pytest

from common.names import InstanceId
from noded.hypervisor.kvm.home import Home
from noded.system import process


def test_no_process_is_looked_at_for_the_tpm_of_a_guest_that_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "PROC", tmp_path / "not to be read")
    home = Home(tmp_path, InstanceId("web1"))
    home.directory.mkdir()
    assert home.tpm_process() is None
