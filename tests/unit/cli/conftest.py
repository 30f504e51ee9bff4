import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from coordinator.cli.main import guarded, run_area, run_umbrella
from tests.unit.cli.coordinator import ScriptedCoordinator


class Ran(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[[str], Ran]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a node that is in no cluster."""
    monkeypatch.setenv("GANTRY_ROOT", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.delenv("GNT_INSTANCE_LIST", raising=False)
    return tmp_path


@pytest.fixture
def coordinator(root: Path) -> Iterator[ScriptedCoordinator]:
    scripted = ScriptedCoordinator(root)
    with scripted.serving():
        yield scripted


@pytest.fixture
def submitted(coordinator: ScriptedCoordinator) -> list[list[dict[str, object]]]:
    """What was submitted, in order; every job succeeds at once."""
    coordinator.script_job()
    return coordinator.submitted


@pytest.fixture
def run(root: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line as a shell would; return its exit code and what it wrote."""

    def call(line: str) -> Ran:
        program, *words = [word.replace("~", " ") for word in line.split()]
        capsys.readouterr()
        if program == "gantry":
            code = guarded(lambda: run_umbrella(words))
        else:
            code = guarded(lambda: run_area(program, words))
        return Ran(code, *capsys.readouterr())

    return call
