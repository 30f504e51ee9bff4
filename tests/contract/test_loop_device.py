"""A block device over a file is gone with the last who has it open."""

import fcntl
import os
from pathlib import Path

import pytest

from noded.hypervisor.kvm.loop_device import open_loop

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="NOT ROOT: no loop device was made"),
    pytest.mark.skipif(
        not Path("/dev/loop-control").exists(), reason="NO LOOP DEVICES HERE: none was made"
    ),
]


def test_a_block_device_over_a_file_is_gone_when_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "disk"
    path.write_bytes(bytes(1 << 20))
    with path.open("r+b") as file:
        device = open_loop(file.fileno())
    name = Path(f"/proc/self/fd/{device}").readlink().name
    bound = Path(f"/sys/block/{name}/loop/backing_file")
    try:
        assert bound.read_text().strip() == str(path)
        assert os.pwrite(device, b"state", 512) == len(b"state")
        os.fsync(device)
        assert path.read_bytes()[512:517] == b"state"
    finally:
        os.close(device)
    assert not bound.exists() or bound.read_text().strip() != str(path)


def test_a_block_device_over_a_file_is_not_probed_by_udev(tmp_path: Path) -> None:
    """It leaves alone what somebody else has locked."""
    path = tmp_path / "disk"
    path.write_bytes(bytes(1 << 20))
    with path.open("r+b") as file:
        device = open_loop(file.fileno())
    as_udev = os.open(Path(f"/proc/self/fd/{device}").readlink(), os.O_RDONLY)
    try:
        with pytest.raises(BlockingIOError):
            fcntl.flock(as_udev, fcntl.LOCK_SH | fcntl.LOCK_NB)
    finally:
        os.close(as_udev)
        os.close(device)
