"""The lab's own tools, as far as they need no node."""

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from deploy.uml import cache, command, room
from deploy.uml.command import LEASH, Trouble, run
from deploy.uml.install import SOURCES
from deploy.uml.lab import Lab
from deploy.uml.node import Node
from deploy.uml.place import CHECKOUT, Place, place
from tests.lab.debian_mirror import is_in_archive


def test_a_lab_has_a_name_that_is_no_path(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, meant in (("", "gantry-lab"), ("other-2", "other-2")):
        monkeypatch.setenv("GANTRY_LAB", name)
        assert place().name == meant
    for name in (".", "..", "a/b", "-x", "x" * 31):
        monkeypatch.setenv("GANTRY_LAB", name)
        with pytest.raises(Trouble, match="a lab's name is made of"):
            place()


def test_clean_deletes_nothing_that_is_not_a_labs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    precious = tmp_path / "thesis" / "chapter1"
    precious.parent.mkdir()
    precious.touch()
    with pytest.raises(Trouble, match="holds other things"):
        Lab(Place("thesis")).clean(print)
    assert precious.exists()


def test_what_a_killed_maker_left_is_cleared_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "CACHE", tmp_path)
    (tmp_path / "making-x" / "root").mkdir(parents=True)
    with cache.making(print) as work:
        assert {path.name for path in tmp_path.iterdir()} == {"lock", work.name}
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_too_little_room_is_said_beforehand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "lab").mkdir()
    monkeypatch.setattr(room, "DISK_MIB", 1 << 40)
    with pytest.raises(Trouble, match=r"lab has \d+ MiB free; what 3 nodes will write takes"):
        room.check_room_for_nodes(Place("lab").base, 3)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a namespace of processes")
def test_what_takes_too_long_ends_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "GRACE_S", 0.1)
    pulse = tmp_path / "pulse"
    program = f"(while :; do echo >>{pulse}; sleep 0.01; done) & wait"
    with pytest.raises(Trouble, match="did not end within 1 s"):
        run((*LEASH, "sh", "-c", program), timeout_s=1)
    beats = pulse.stat().st_size
    time.sleep(0.1)  # noqa: TID251 -- real processes, real time
    assert pulse.stat().st_size == beats


def test_nodes_get_all_that_the_installation_reads() -> None:
    text = (CHECKOUT / "deploy/install").read_text()
    read = set(re.findall(r"deploy[/.][a-z][a-z_.-]*[a-z]", text)) - {"deploy/install"}
    assert {name.replace("deploy.", "deploy/") for name in read} <= {*SOURCES}


def test_process_that_ends_while_it_is_to_be_ended_is_fine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    gone = subprocess.Popen(("true",))
    gone.wait()
    left = [[gone.pid], []]
    monkeypatch.setattr(Node, "_processes", lambda _: left.pop(0))
    monkeypatch.setattr(Node, "pid", None)
    place = Place("lab-none")
    (spot := place.spots(1)[0]).directory.mkdir(parents=True)
    Node(place, spot).power_off()
    assert left == []


def test_nodes_are_passed_on_what_is_in_debians_archive_and_nothing_else() -> None:
    for path in (
        "/dists/bookworm/InRelease",
        "/dists/bookworm/main/binary-amd64/by-hash/SHA256/0af1",
        "/pool/main/g/gcc-12/libstdc++6_12.2.0-14+deb12u1_amd64.deb",
        "/pool/main/b/base-files/base-files_12.4+deb12u1~1_amd64.deb",
    ):
        assert is_in_archive(path)
    for path in (
        "/pool/../../etc/shadow", "/pool/..", "/pool/./x", "/pool//x", "/etc/shadow", "/pool/x\n",
        "/pool/x?y", "//other.example/pool/x", "pool/x", "/pool/-o",
    ):  # fmt: skip
        assert not is_in_archive(path)
