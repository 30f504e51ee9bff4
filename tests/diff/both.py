"""Ours and Debian's tools, run on the same cluster."""

import contextlib
import io
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from coordinator.htools.options import Option, Parsed
from coordinator.htools.program import run

SEED = int(os.environ.get("HTOOLS_SEED", "1"))
CASES = int(os.environ.get("HTOOLS_CASES", "25"))


def find(program: str) -> str | None:
    """Debian's program; ours of the same name may be first in the virtual environment."""
    return shutil.which(program, path="/usr/bin:/usr/local/bin")


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        find(program) is None,
        reason=f"{program.upper()} IS NOT INSTALLED (apt install ganeti-htools): nothing compared",
    )


def theirs(program: str, words: Sequence[str]) -> tuple[str, int]:
    path = find(program)
    assert path is not None
    done = subprocess.run(  # noqa: TID251 - the other program, and nothing else runs meanwhile
        [path, *words], capture_output=True, text=True, timeout=120, check=False
    )
    return done.stdout, done.returncode


def ours(
    program: str, options: Sequence[Option], work: Callable[[Parsed], int], words: Sequence[str]
) -> tuple[str, int]:
    output = io.StringIO()
    silence = contextlib.redirect_stderr(io.StringIO())
    with contextlib.redirect_stdout(output), silence, pytest.raises(SystemExit) as ended:
        run(program, options, work, words)
    assert isinstance(ended.value.code, int)
    return output.getvalue(), ended.value.code


def saved(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)
