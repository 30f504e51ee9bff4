"""How a script has ended, as it is told to who copies its stream."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from noded.copies.ending import FILE, Ending, KeptEnding

KEEPS = "import sys; from noded.copies.ending import KeptEnding; KeptEnding(sys.argv[1]); "


class GoesOn(Exception):
    pass


def goes_on() -> None:
    raise GoesOn


def beside(directory: Path) -> Ending:
    """Return what is kept beside a stream in a directory."""
    (directory / "stream").touch()
    stream = os.open(directory / "stream", os.O_RDONLY)
    try:
        return Ending(stream)
    finally:
        os.close(stream)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (0, ""),
        (3, "ended with status 3"),
        (-9, "was ended by signal 9"),
        (143, "was ended by signal 15"),  # as a shell tells it
    ],
)
def test_it_is_told_when_the_script_has_ended_and_not_before(
    tmp_path: Path, status: int, said: str
) -> None:
    (tmp_path / FILE).touch()
    kept = KeptEnding(str(tmp_path / FILE))
    ending = beside(tmp_path)
    with pytest.raises(GoesOn):
        ending.wait(go_on=goes_on)
    kept.tell(status)
    assert ending.wait(go_on=goes_on) == said


def test_a_script_whose_process_is_gone_has_not_ended_well(tmp_path: Path) -> None:
    (tmp_path / FILE).touch()
    argv = (sys.executable, "-c", f"{KEEPS}print(flush=True); input()", str(tmp_path / FILE))
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout
        other.stdout.readline()
        ending = beside(tmp_path)
        with pytest.raises(GoesOn):
            ending.wait(go_on=goes_on)
        other.kill()
    assert ending.wait(go_on=goes_on) == "was killed"


def test_one_that_does_not_tell_has_not_ended_well(tmp_path: Path) -> None:
    assert "a noded that is too old" in beside(tmp_path).wait(go_on=goes_on)
