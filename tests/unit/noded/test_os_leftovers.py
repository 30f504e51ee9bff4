"""What scripts leave on top of disks is found in sysfs."""

from pathlib import Path

import pytest

from noded.operating_systems import leftovers


def test_mappings_come_before_the_loop_device_below_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = tmp_path / "disk"
    disk.touch()
    block = tmp_path / "sys/block"
    for name, backing in (("loop0", "/somebody/elses"), ("loop3", str(disk))):
        (block / name / "loop").mkdir(parents=True)
        (block / name / "loop/backing_file").write_text(f"{backing}\n")
    for holder, name in (("dm-4", "loop3p1"), ("dm-5", "loop3p2")):
        (block / "loop3/holders" / holder).mkdir(parents=True)
        (block / holder / "dm").mkdir(parents=True)
        (block / holder / "dm/name").write_text(f"{name}\n")
    monkeypatch.setattr(leftovers, "SYSFS", tmp_path / "sys")
    assert leftovers.layers_on([str(disk), str(tmp_path / "none")]) == (
        "/dev/mapper/loop3p1",
        "/dev/mapper/loop3p2",
        "/dev/loop3",
    )
