"""Starting the coordinator by systemd, with a ``systemctl`` that writes down what it was told."""

from pathlib import Path

import pytest

from common.errors import NodeFailure
from coordinator.cli import service
from tests.unit.cli.coordinator import ScriptedCoordinator

SYSTEMCTL = """#!/bin/sh
echo "$@" >> "$0.log"
case $1 in
start) exit {status} ;;
show) echo "beta is the master." ;;
esac
"""


@pytest.fixture
def systemctl(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "bin" / "systemctl"
    path.parent.mkdir()
    path.write_text(SYSTEMCTL.format(status=0))
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(path.parent), prepend=":")
    monkeypatch.setattr(service, "by_systemd", lambda: True)
    return path


def told(systemctl: Path) -> list[str]:
    return systemctl.with_suffix(".log").read_text().splitlines()


def test_an_operators_word_is_for_one_start(
    systemctl: Path, coordinator: ScriptedCoordinator
) -> None:
    service.start(("--no-voting", "--yes-do-it"))
    assert told(systemctl) == [
        "set-environment GANTRY_COORDINATOR_OPTIONS=--no-voting --yes-do-it",
        "start gantry-coordinator.service",
        "unset-environment GANTRY_COORDINATOR_OPTIONS",
    ]


def test_the_word_is_taken_back_where_the_start_fails(systemctl: Path) -> None:
    systemctl.write_text(SYSTEMCTL.format(status=1))
    with pytest.raises(NodeFailure, match=r"“systemctl start .*” failed"):
        service.start(("--no-voting",))
    assert told(systemctl)[-1] == "unset-environment GANTRY_COORDINATOR_OPTIONS"


def test_a_coordinator_that_finds_another_master_is_not_taken_for_started(systemctl: Path) -> None:
    with pytest.raises(NodeFailure, match=r"ended at once\. beta is the master\."):
        service.start()
