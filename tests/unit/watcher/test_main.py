"""The program as systemd starts it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.errors import Conflict
from tests.unit.cli.coordinator import ScriptedCoordinator

PROGRAM = """
import sys
from coordinator.watcher.main import main
code = main()
print("imported:", *sorted({name.partition(".")[0] for name in sys.modules}))
sys.exit(code)
"""
# Each takes longer than all the rest of a round.
HEAVY = {"aiohttp", "asyncio", "cryptography", "immutables", "msgspec", "numpy", "uvloop"}


def run(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: TID251  # there is no loop here to block
        [sys.executable, "-c", PROGRAM, *options],
        env=os.environ | {"GANTRY_ROOT": str(root)},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def coordinator(tmp_path: Path) -> Iterator[ScriptedCoordinator]:
    scripted = ScriptedCoordinator(tmp_path)
    scripted.methods["AutoArchiveJobs"] = lambda age_s, patience_s: [0, 4]
    scripted.methods["RunWatcherHooks"] = list
    with scripted.serving():
        yield scripted


def test_a_round_with_a_coordinator_imports_nothing_heavy(
    tmp_path: Path, coordinator: ScriptedCoordinator
) -> None:
    ran = run(tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("imported: ")
    assert HEAVY.isdisjoint(ran.stdout.split()), HEAVY & set(ran.stdout.split())


def test_what_it_orders_is_said(tmp_path: Path, coordinator: ScriptedCoordinator) -> None:
    told = {"instance": [["web7"]], "job": [], "lock": []}
    coordinator.methods["Query"] = lambda what, fields, _: {
        "data": [
            [[0, value] for value in row]
            for row in told[what]
            if not {"mirror_state", "expires"} & {*fields}
        ]
    }
    ran = run(tmp_path)
    assert ran.returncode == 0
    assert (
        ran.stderr == "Instance web7 should run and does not; job 41 starts it, attempt 1 of 5.\n"
    )
    assert coordinator.submitted[0][0]["instance_name"] == "web7"


def test_what_was_done_is_said_even_if_hooks_fail_then(
    tmp_path: Path, coordinator: ScriptedCoordinator
) -> None:
    def fail() -> None:
        raise Conflict("The cluster is read-only.")

    coordinator.methods["AutoArchiveJobs"] = lambda age_s, patience_s: [3, 4]
    coordinator.methods["RunWatcherHooks"] = fail
    ran = run(tmp_path)
    assert ran.returncode == Conflict.exit_code
    assert ran.stderr == "Archived 3 jobs.\nThe cluster is read-only.\n"


def test_where_no_coordinator_runs_it_ends_at_once_and_says_so(tmp_path: Path) -> None:
    ran = run(tmp_path)
    assert ran.returncode == 11
    assert ran.stderr == "No coordinator runs on this node; the watcher works on the master.\n"


def test_a_refusal_is_told_in_a_sentence(tmp_path: Path, coordinator: ScriptedCoordinator) -> None:
    def refuse(*_: object) -> None:
        raise Conflict("The cluster is read-only.")

    coordinator.methods["AutoArchiveJobs"] = refuse
    ran = run(tmp_path)
    assert ran.returncode == Conflict.exit_code
    assert ran.stderr == "The cluster is read-only.\n"


def test_an_answer_of_a_wrong_form_is_no_traceback(
    tmp_path: Path, coordinator: ScriptedCoordinator
) -> None:
    coordinator.methods["QueryConfigValues"] = lambda names: "nonsense"
    ran = run(tmp_path)
    assert ran.returncode == 70
    assert ran.stderr.startswith("This is a bug of Gantry: ValueError: ")
    assert len(ran.stderr.splitlines()) == 1
