"""A run of pytest in two processes is one run."""

import os
import subprocess
import sys
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.processes import _Turns, _with_following

ROOT = Path(__file__).parents[2]
TESTS = 20
MANY = 20_000
OF_ONE = 9  # that one process takes
HOOKS = """
from tests.support import processes
from tests.support.processes import add_option as pytest_addoption, pytest_runtestloop

processes.has_room = lambda nodes: True
"""
SHARED = f"""
import os, time
from pathlib import Path
import pytest

HERE = Path(__file__).parent
FIRST = os.getpid()  # imported before the processes part

@pytest.mark.parametrize("number", range({TESTS}))
def test_shared(number):
    (HERE / f"{{number}} ran").mkdir()
    (HERE / f"{{os.getpid()}} takes part").mkdir(exist_ok=True)
    while number == 0 and len(list(HERE.glob("* takes part"))) < 2:
        time.sleep(0.01)  # so that each process has some
    is_helper = os.getpid() != FIRST
    print("what", number, "printed")
"""
OF_THE_MACHINE = f"""
import os
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", range({OF_ONE}))
def test_of_the_machine(number):
    with (Path(__file__).parent / "by").open("a") as file:
        print(os.getpid(), file=file)
"""
TALKATIVE = f"""
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", range({TESTS}))
def test_talkative(number):
    print("more than a pipe holds, all in all " * 1000)
    (Path(__file__).parent / f"{{number}} ran").mkdir()
"""
OF_THE_LAB = f"""
import time
from pathlib import Path

def test_of_the_lab():
    # One is what this process itself runs next.
    while len(list((Path(__file__).parents[1] / "unit").glob("* ran"))) < {TESTS - 1}:
        time.sleep(0.01)
"""
IN_A_LAB = """
import os, time
from pathlib import Path

def test_in_a_lab():
    # Whoever plays this one waits for who plays the other one.
    (Path(__file__).parent / str(os.getpid())).mkdir()
    while sum(each.is_dir() for each in Path(__file__).parent.glob("[1-9]*")) < 2:
        time.sleep(0.01)

def test_in_the_same_lab():
    assert (Path(__file__).parent / str(os.getpid())).exists()
"""
BROKEN_OFF = """
import time
from pathlib import Path
import pytest

@pytest.fixture
def made(tmp_path):
    there = Path(__file__).parent / "made"
    there.mkdir()
    yield
    there.rmdir()

def test_broken_off(made):
    time.sleep(600)

def test_next():  # else its process would take the story
    pass
"""
BREAKS_OFF = """
import time
from pathlib import Path

def test_breaks_off():
    while not (Path(__file__).parents[1] / "contract/made").exists():
        time.sleep(0.01)
    assert False

def test_next():
    pass
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return write(tmp_path, {"unit/test_a.py": SHARED, "contract/test_b.py": OF_THE_MACHINE})


def write(root: Path, tests: dict[str, str]) -> Path:
    """Make a suite of files."""
    (root / "conftest.py").write_text(HOOKS)
    for name, text in tests.items():
        path = root / "tests" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def then(suite: Path, line: str) -> Path:
    """Have each test that is shared end with a line."""
    with (suite / "tests/unit/test_a.py").open("a") as file:
        file.write(f"    {line}\n")
    return suite


def run(suite: Path, *options: str) -> subprocess.CompletedProcess[str]:
    line = (
        sys.executable, "-m", "pytest", "-q", "--import-mode=importlib", "--rootdir=.",
        "-p", "no:cacheprovider", "--processes", "2", *options, *map(str, suite.glob("tests/*/")),
    )  # fmt: skip
    # Importing plugins that nothing here needs is half of the time that such a run takes.
    env = os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(  # noqa: TID251 -- no loop to be blocked
        line, cwd=suite, env=env, capture_output=True, text=True, timeout=60, check=False
    )


def test_each_test_runs_once_and_those_of_the_machine_in_one_process(suite: Path) -> None:
    ran = run(suite)
    assert ran.stdout.splitlines()[-1].startswith(f"{TESTS + OF_ONE} passed in "), ran.stdout
    processes = (suite / "tests/contract/by").read_text().split()
    assert (len(processes), len({*processes})) == (OF_ONE, 1)


def test_the_others_hold_nobody_up_while_the_first_process_is_busy_in_the_lab(
    tmp_path: Path,
) -> None:
    tests = {"unit/test_a.py": TALKATIVE, "lab/test_c.py": OF_THE_LAB}
    ran = run(write(tmp_path, tests))
    assert ran.stdout.splitlines()[-1].startswith(f"{TESTS + 1} passed in "), ran.stdout


def test_who_has_nothing_else_to_do_plays_stories_in_another_lab(tmp_path: Path) -> None:
    tests = {"unit/test_a.py": TALKATIVE, "lab/test_c.py": IN_A_LAB, "lab/test_d.py": IN_A_LAB}
    ran = run(write(tmp_path, tests))
    assert ran.stdout.splitlines()[-1].startswith(f"{TESTS + 4} passed in "), ran.stdout


def test_no_test_is_taken_by_two_processes_that_ask_at_once() -> None:
    tests: list[Any] = [SimpleNamespace(path=Path("test_a.py"), name=each) for each in range(MANY)]
    turns = _Turns(tests)
    ours, theirs = Pipe(duplex=False)
    if (child := os.fork()) == 0:
        theirs.send([each.name for each in turns])
        os._exit(0)
    here = [each.name for each in turns]
    there = ours.recv()
    os.waitpid(child, 0)
    assert sorted(here + there) == list(range(MANY))


def test_tests_that_share_a_fixture_are_taken_by_one_process() -> None:
    tests: list[Any] = [
        SimpleNamespace(path=Path("test_a.py"), callspec=SimpleNamespace(id=each))
        for each in "xxyy"
    ]
    tests += [SimpleNamespace(path=Path("test_a.py")), SimpleNamespace(path=Path("test_a.py"))]
    turns = _Turns(tests)
    one, other = _with_following(turns), _with_following(turns)
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
    one, other = _with_following(turns), _with_following(turns)
    assert [next(one), next(other)] == [(tests[0], tests[1]), (tests[2], tests[3])]


def test_tests_that_read_the_whole_tree_are_taken_by_one_process() -> None:
    layers: list[Any] = [
        SimpleNamespace(path=Path("tests/unit/test_layers.py"), callspec=SimpleNamespace(id=each))
        for each in "xy"
    ]
    tests = [*layers, SimpleNamespace(path=Path("tests/unit/test_c.py"))]
    turns = _Turns(tests)
    one, other = _with_following(turns), _with_following(turns)
    assert [next(one), next(other)] == [(tests[0], tests[1]), (tests[2], None)]


def test_what_fails_in_another_process_is_told_with_what_it_printed(suite: Path) -> None:
    ran = run(then(suite, "assert not is_helper or number % 2, 'a helper fails'"))
    failed = ran.stdout.count("\nFAILED tests/unit/test_a.py::test_shared[")
    assert failed > 0, ran.stdout
    assert ran.stdout.count(" printed\n") == failed
    summary = ran.stdout.splitlines()[-1]
    assert summary.startswith(f"{failed} failed, {TESTS + OF_ONE - failed} passed in "), summary
    assert ran.returncode == 1


def test_one_failure_is_enough_in_whichever_process(suite: Path) -> None:
    ran = run(then(suite, "assert not is_helper"), "-x")
    assert ran.stdout.splitlines()[-1].startswith("1 failed, "), ran.stdout
    assert ran.returncode == 1


def test_a_test_that_is_broken_off_in_another_process_puts_away_what_it_made(
    tmp_path: Path,
) -> None:
    suite = write(tmp_path, {"contract/test_b.py": BROKEN_OFF, "lab/test_c.py": BREAKS_OFF})
    ran = run(suite, "-x")
    assert ran.stdout.splitlines()[-1].startswith("1 failed in "), ran.stdout
    assert not (suite / "tests/contract/made").exists()


def test_a_process_that_dies_ends_the_run_with_the_name_of_its_test(suite: Path) -> None:
    ran = run(then(suite, "if is_helper: os._exit(0)"))
    assert "A process of the tests died at tests/unit/test_a.py::test_shared[" in ran.stdout
    assert ran.returncode == 3
