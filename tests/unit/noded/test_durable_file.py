import errno
import os
import stat
from pathlib import Path

import pytest

from common.errors import NodeFailure
from noded.durable_file import read_if_there, remove_durably, write_durably


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mastership.json"


def test_a_file_is_replaced_whole(path: Path) -> None:
    for data in (b"one", b"a longer one", b""):
        write_durably(path, data)
        assert path.read_bytes() == data
    assert list(path.parent.iterdir()) == [path]


def test_a_file_that_the_disk_takes_in_parts_is_whole(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    write_durably(path, b"more than three bytes")
    assert path.read_bytes() == b"more than three bytes"


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_the_mode_holds_whatever_the_umask_and_what_was_there(path: Path, mode: int) -> None:
    before = os.umask(0o077)
    try:
        write_durably(path, b"one", mode=0o600)
        write_durably(path, b"two", mode=mode)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_data_and_name_are_on_disk_in_that_order(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, replace = os.fsync, Path.replace

    def recorded_sync(descriptor: int) -> None:
        kind = "directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        done.append(f"sync {kind}")
        sync(descriptor)

    def recorded_replace(self: Path, target: Path) -> Path:
        done.append("rename")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", recorded_sync)
    monkeypatch.setattr(Path, "replace", recorded_replace)
    write_durably(path, b"one")
    assert done == ["sync file", "rename", "sync directory"]


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EROFS, "read-only"),
        (errno.EIO, "input/output error"),
        (errno.ELOOP, "Too many levels"),
    ],
)
def test_a_failure_leaves_the_old_file_and_says_why(
    path: Path, monkeypatch: pytest.MonkeyPatch, number: int, reason: str
) -> None:
    write_durably(path, b"old")

    def fail(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(NodeFailure, match=reason) as caught:
        write_durably(path, b"new")
    assert str(path) in caught.value.message
    assert caught.value.detail["errno"] == number
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]


def test_a_really_full_disk(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    really_open = os.open

    def open_full(name: str | Path, flags: int, mode: int = 0o777) -> int:
        if Path(name).name.endswith(".new"):
            return really_open("/dev/full", os.O_WRONLY)
        return really_open(name, flags, mode)

    write_durably(path, b"old")
    monkeypatch.setattr(os, "open", open_full)
    monkeypatch.setattr(os, "fchmod", lambda *_: None)  # it is the device's mode
    with pytest.raises(NodeFailure, match=r"Cannot write .*: the disk is full"):
        write_durably(path, b"new")
    assert path.read_bytes() == b"old"


def test_a_missing_directory_is_said(tmp_path: Path) -> None:
    with pytest.raises(NodeFailure, match="No such file"):
        write_durably(tmp_path / "absent" / "file", b"")


def test_what_a_crash_left_is_no_obstacle(path: Path) -> None:
    path.with_name(f".{path.name}.new").write_text("half of it")
    write_durably(path, b"whole")
    assert path.read_bytes() == b"whole"


def test_removing_may_be_repeated(path: Path) -> None:
    write_durably(path, b"one")
    remove_durably(path)
    remove_durably(path)
    remove_durably(path / "of" / "nothing")
    assert not path.exists()


def test_a_file_is_read_as_it_is_or_found_to_be_absent(path: Path) -> None:
    assert read_if_there(path) is None
    for data in (b"", b"one", bytes(range(256)) * 4096):
        write_durably(path, data)
        assert read_if_there(path) == data
        assert read_if_there(f"{path}") == data


def test_what_cannot_be_read_is_told_in_words(path: Path) -> None:
    path.mkdir()
    with pytest.raises(NodeFailure, match=f"Cannot read {path}: Is a directory"):
        read_if_there(path)
