"""Programs in ``deploy/`` tell what they do before they install anything."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A checkout in which nothing is installed, and a setup that only leaves a mark."""
    shutil.copytree(PROJECT / "deploy", tmp_path / "deploy", symlinks=True)
    (tmp_path / "deploy/setup").write_text("#!/bin/sh\ntouch was-set-up\nexit 1\n")
    for folder in ("common", "tests"):
        (tmp_path / folder).symlink_to(PROJECT / folder)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("bench --help", "Usage: deploy/bench"),
        ("demo --help", "Usage: deploy/demo"),
        ("lab --help", "usage: deploy/lab"),
        ("lab up --help", "usage: deploy/lab up"),
        ("lab prepare -h", "usage: deploy/lab prepare"),
        ("mutate --help", "usage: deploy/mutate"),
        ("mutate -h", "usage: deploy/mutate"),
        ("sim --help", "usage: deploy/sim"),
        ("sim --seeds 3 -h", "usage: deploy/sim"),
        ("test --help", "Usage: deploy/test"),
    ],
)
def test_help_comes_before_setup(bare: Path, line: str, told: str) -> None:
    program, *words = line.split()
    done = subprocess.run(  # noqa: TID251 - no event loop here
        [bare / "deploy" / program, *words], capture_output=True, text=True, check=False,
        env={"PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(told)
    assert not (bare / "was-set-up").exists()
