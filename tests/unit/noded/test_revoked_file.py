"""The keys that open nothing any more, on disk: what a node has of them after any accident."""

import os
from pathlib import Path

import pytest

import noded.calls.revoked as revoked_module
from common.errors import NodeFailure
from common.names import KeyId
from common.revoked_keys import RevokedKeys
from noded.calls.revoked import RevokedFile

KEYS = tuple(KeyId(f"{number:064x}") for number in range(9))


def at(root: Path) -> RevokedFile:
    return RevokedFile(root / "revoked-keys")


def test_what_was_written_is_there_after_a_restart(tmp_path: Path) -> None:
    file = at(tmp_path)
    for keys in (KEYS[:1], KEYS[:4], KEYS[:4], KEYS[2:7], ()):
        file.write(RevokedKeys(keys))
        assert file.list.keys == at(tmp_path).list.keys == keys


def test_one_key_more_is_one_line_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = at(tmp_path)
    file.write(RevokedKeys(KEYS[:5]))
    monkeypatch.delattr(revoked_module, "write_durably")  # nothing is written as a whole
    file.write(RevokedKeys(KEYS[:6]))
    assert at(tmp_path).list.keys == KEYS[:6]


@pytest.mark.parametrize(
    "left", ["", "0" * 30, "0" * 64, "\0" * 65, "zz\n", "é\n" + "0" * 64 + "\n"]
)
def test_a_line_that_was_half_written_is_no_key_and_spoils_none(tmp_path: Path, left: str) -> None:
    at(tmp_path).write(RevokedKeys(KEYS[:3]))
    path = tmp_path / "revoked-keys"
    path.write_text(path.read_text() + left)
    file = at(tmp_path)
    assert file.list.keys == KEYS[:3]
    file.write(RevokedKeys(KEYS[:4]))
    assert at(tmp_path).list.keys == KEYS[:4]


@pytest.mark.parametrize("line", ["", "\0" * 64, "zz", KEYS[1][:30] + KEYS[2]])
def test_keys_after_a_line_that_is_damaged_stay_revoked(tmp_path: Path, line: str) -> None:
    file = at(tmp_path)
    file.write(RevokedKeys(KEYS[:6]))
    path = tmp_path / "revoked-keys"
    lines = path.read_text().splitlines()
    path.write_text("\n".join((*lines[:1], line, *lines[3:], "")))
    again = at(tmp_path)
    assert again.list.keys == (KEYS[0], *KEYS[3:6])
    assert again.list.held != file.list.held
    again.write(RevokedKeys(KEYS[:7]))
    assert at(tmp_path).list.keys == KEYS[:7]


@pytest.mark.parametrize("lost", [0, 1, 30, 65])  # bytes of the line that do not get there
def test_a_disk_that_fills_up_in_the_middle_leaves_a_list_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    file = at(tmp_path)
    file.write(RevokedKeys(KEYS[:2]))

    def full(descriptor: int) -> None:
        os.truncate(tmp_path / "revoked-keys", os.fstat(descriptor).st_size - lost)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(NodeFailure, match="the disk is full"):
            file.write(RevokedKeys(KEYS[:3]))
    assert file.list.keys == KEYS[:2]
    file.write(RevokedKeys(KEYS[:4]))
    assert (tmp_path / "revoked-keys").read_text().split() == list(KEYS[:4])
    assert at(tmp_path).list.keys == KEYS[:4]


def test_a_file_that_is_gone_is_written_anew(tmp_path: Path) -> None:
    file = at(tmp_path)
    file.write(RevokedKeys(KEYS[:2]))
    file.remove()
    assert at(tmp_path).list.keys == file.list.keys == ()
    file.write(RevokedKeys(KEYS[:2]))
    assert at(tmp_path).list.keys == KEYS[:2]
