"""Plant faults in a copy of the tree, one after the other, and see which test notices."""

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.mutate.fault import Fault

ROOT = Path(__file__).parents[2]
ALL = ("tests/unit", "tests/sim")
LIMIT_S = 900.0  # for all tests; a fault may well make something wait for ever
NOT_OURS = shutil.ignore_patterns(
    ".git", ".venv", ".cache", ".mypy_cache", ".ruff_cache", ".pytest_cache"
)


class Caught(NamedTuple):
    """Who noticed a fault; nobody, if ``by`` is empty."""

    by: str
    took_s: float


@contextmanager
def planted(tree: Path, fault: Fault) -> Iterator[None]:
    """Have a fault in the tree for the length of a block."""
    path = tree / fault.file
    whole = path.read_text()
    try:
        _replace(path, fault.planted(tree))
        yield
    finally:
        _replace(path, whole)


def copied(place: Path) -> Path:
    """Copy the tree, without what was made in it."""
    return Path(shutil.copytree(ROOT, place / "tree", ignore=NOT_OURS, symlinks=True))


def look(tree: Path, fault: Fault) -> Caught:
    """Run the tests on a fault: the expected ones first, then all."""
    began = time.monotonic()
    with planted(tree, fault):
        by = next((by for each in (*fault.tests, ALL) if (by := _run(tree, each))), "")
    return Caught(by, time.monotonic() - began)


def _run(tree: Path, tests: str | Sequence[str]) -> str:
    """Return the first test that fails, or an empty text."""
    if isinstance(tests, str):
        path, _, words = tests.partition(" ")
        chosen = [path, "-k", words] if words else [path]
    else:
        chosen = list(tests)
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly", "--no-header"]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *chosen], cwd=tree, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False,
            env={
                "PYTHONPATH": str(tree), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
                "GANTRY_SIM_CARE": "usual",
            },
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"nothing ends within {LIMIT_S:g} s"
    if done.returncode == 0:
        return ""
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    if failed is None:
        raise RuntimeError(f"The tests could not be run: {done.stdout[-2000:]}")
    return failed[1]


def _replace(path: Path, text: str) -> None:
    """Write a module, and forget what was compiled of it: times are too coarse to tell."""
    path.write_text(text)
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()
