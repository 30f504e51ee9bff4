"""What a script leaves mounted gets to its disk before the script counts as ended."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from noded.operating_systems.confine import command_line

TOOLS = ("losetup", "mkfs.ext4", "debugfs", "unshare", "setpriv")


def ran(*argv: str) -> str:
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True)  # noqa: TID251 -- there is no loop
    return done.stdout


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Path]:
    """Return a device with a file system."""
    if os.geteuid() != 0:
        pytest.skip("scripts get names of processes of their own, for which it takes root")
    if not all(shutil.which(tool) for tool in TOOLS):
        pytest.skip(f"NOT INSTALLED: one of {', '.join(TOOLS)}; no script mounted anything")
    image = tmp_path / "disk"
    with image.open("wb") as file:
        file.truncate(16 << 20)
    ran("mkfs.ext4", "-q", str(image))
    device = Path(ran("losetup", "--find", "--show", str(image)).strip())
    yield device
    ran("losetup", "--detach", str(device))


def test_what_a_script_has_left_mounted_is_not_when_it_has_ended(
    loop: Path, tmp_path: Path
) -> None:
    """The kernel unmounts it with the last process; what it writes then is synced afterwards."""
    there = tmp_path / "there"
    there.mkdir()
    in_use = Path("/sys/fs/ext4") / loop.name
    script = (
        f"mount {loop} {there} && echo data >{there}/file && test -e {in_use} && cd {there} && "
        "(sleep 1000 >/dev/null &)"
    )
    ran(*command_line(("/bin/sh", "-c", script)))
    assert not in_use.exists()
    assert ran("debugfs", "-R", "cat /file", str(loop)) == "data\n"
