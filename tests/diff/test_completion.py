"""--help-completion: what Debian's say of their options, and what ours have besides."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.diff.both import find
from tests.unit.allocator.hail import HAIL

RAPI_AUTHORITY = "--rapi-ca file"
OURS_ONLY = {
    "hail": {"--mond-data file", "--strict-compat none"},
    "hbal": {"--look-ahead integer", RAPI_AUTHORITY, "--strict-compat none"},
    "hcheck": set[str](),
    "hinfo": {RAPI_AUTHORITY},
    "hroller": set[str](),
    "hscan": set[str](),
    "hspace": {RAPI_AUTHORITY},
    "hsqueeze": set[str](),
}


@pytest.mark.parametrize("program", OURS_ONLY)
def test_same_completion(program: str) -> None:
    path = str(HAIL) if program == "hail" else find(program)
    if path is None or not Path(path).exists():
        pytest.skip(f"{program.upper()} IS NOT INSTALLED (apt install ganeti-htools)")
    mine = lines_of(str(Path(sys.executable).parent / program))
    other = lines_of(path)
    assert set(mine) - set(other) == OURS_ONLY[program]
    assert set(other) <= set(mine)
    assert len(mine) == len(set(mine))


def lines_of(program: str) -> list[str]:
    done = subprocess.run(  # noqa: TID251 - no event loop here
        [program, "--help-completion"], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.splitlines()
