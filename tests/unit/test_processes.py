"""A run of pytest in two processes is one run."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.processes import _Turns

ROOT = Path(__file__).parents[2]
TESTS = 20
HOOKS = "from tests.support.processes import add_option as pytest_addoption, pytest_runtestloop"
SHARED = f"""
import os, time
from pathlib import Path
import pytest

HERE = Path(__file__).parent
FIRST = os.getpid()  # imported before the processes part

@pytest.mark.parametrize("number", range({TESTS}))
def test_shared(number):
    (HERE / f"{{number}} ran").mkdir()
    # A process takes two tests at first: the first and the third are never the same one's.
    while number == 0 and not (HERE / "2 ran").exists():
        time.sleep(0.01)
    is_helper = os.getpid() != FIRST
    print("what", number, "printed")
"""
OF_THE_MACHINE = f"""
import os
from pathlib import Path
from tests.support.processes import SHARED

FIRST = os.getpid()

def test_of_the_machine():
    assert os.getpid() == FIRST
    assert len(list((Path(__file__).parents[1] / "unit").glob("* ran"))) == {TESTS}
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text(HOOKS)
    for name, text in {"unit/test_a.py": SHARED, "contract/test_b.py": OF_THE_MACHINE}.items():
        path = tmp_path / "tests" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    return tmp_path


def run(suite: Path, then: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the tests of a suite, each of which ends with ``then``."""
    with (suite / "tests/unit/test_a.py").open("a") as file:
        file.write(f"    {then}\n")
    line = (
        sys.executable, "-m", "pytest", "-q", "--import-mode=importlib", "--rootdir=.",
        "-p", "no:cacheprovider", "--processes", "2", "tests/unit", "tests/contract", *options,
    )  # fmt: skip
    return subprocess.run(  # noqa: TID251 -- no loop to be blocked
        line, cwd=suite, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip


def test_each_test_runs_once_and_those_of_the_machine_afterwards(suite: Path) -> None:
    ran = run(suite, "pass")
    assert ran.stdout.splitlines()[-1].startswith(f"{TESTS + 1} passed in "), ran.stdout


def test_tests_that_share_a_fixture_are_taken_by_one_process() -> None:
    tests: list[Any] = [
        SimpleNamespace(path=Path("test_a.py"), callspec=SimpleNamespace(id=each))
        for each in "xxyy"
    ]
    tests += [SimpleNamespace(path=Path("test_a.py")), SimpleNamespace(path=Path("test_a.py"))]
    turns = _Turns(tests)
    one, other = iter(turns), iter(turns)
    assert [next(one), next(other)] == [(tests[0], tests[1]), (tests[2], tests[3])]
    assert [next(one), next(other)] == [(tests[1], tests[4]), (tests[3], tests[5])]


def test_tests_that_share_a_cluster_are_taken_by_one_process_whatever_their_parameters() -> None:
    beside = [
        SimpleNamespace(path=Path("tests/diff", name), callspec=SimpleNamespace(id=each))
        for name in ("test_a.py", "test_b.py")
        for each in "xy"
    ]
    tests: list[Any] = [*beside, SimpleNamespace(path=Path("tests/unit/test_c.py"))]
    turns = _Turns(tests)
    one, other = iter(turns), iter(turns)
    assert [next(one), next(other)] == [(tests[0], tests[1]), (tests[2], tests[3])]


def test_tests_that_read_the_whole_tree_are_taken_by_one_process() -> None:
    layers: list[Any] = [
        SimpleNamespace(path=Path("tests/unit/test_layers.py"), callspec=SimpleNamespace(id=each))
        for each in "xy"
    ]
    tests = [*layers, SimpleNamespace(path=Path("tests/unit/test_c.py"))]
    turns = _Turns(tests)
    one, other = iter(turns), iter(turns)
    assert [next(one), next(other)] == [(tests[0], tests[1]), (tests[2], None)]


def test_what_fails_in_another_process_is_told_with_what_it_printed(suite: Path) -> None:
    ran = run(suite, "assert not is_helper or number % 2, 'a helper fails'")
    failed = ran.stdout.count("\nFAILED tests/unit/test_a.py::test_shared[")
    assert failed > 0, ran.stdout
    assert ran.stdout.count(" printed\n") == failed
    summary = ran.stdout.splitlines()[-1]
    assert summary.startswith(f"{failed} failed, {TESTS + 1 - failed} passed in "), summary
    assert ran.returncode == 1


def test_one_failure_is_enough_in_whichever_process(suite: Path) -> None:
    ran = run(suite, "assert not is_helper", "-x")
    assert ran.stdout.splitlines()[-1].startswith("1 failed, "), ran.stdout
    assert "test_of_the_machine" not in ran.stdout
    assert ran.returncode == 1


def test_a_process_that_dies_ends_the_run_with_the_name_of_its_test(suite: Path) -> None:
    ran = run(suite, "if is_helper: os._exit(0)")
    assert "A process of the tests died at tests/unit/test_a.py::test_shared[" in ran.stdout
    assert ran.returncode == 3
