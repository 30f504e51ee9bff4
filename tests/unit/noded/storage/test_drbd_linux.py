"""The module of a node: how many programs are run for it, and what is said when they fail."""

from pathlib import Path
from typing import Any

import pytest

from common.errors import NodeFailure
from common.model.disk_parameters import DrbdParameters
from common.names import MiB
from noded.storage.drbd import line
from noded.storage.drbd.eight import netlink
from noded.storage.drbd.linux import LinuxDrbd
from noded.storage.drbd.messages import Message
from noded.storage.drbd.module import InUse, ModuleState
from noded.system.execute import CommandFailed, Finished
from tests.unit.noded.storage.drbd_module import (
    LINK,
    SECRET,
    Module,
    Programs,
    answers,
    run,
    system,
)


def test_a_device_takes_one_program_and_its_promotion_none(
    eight: Module, told: list[dict[int, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def activate(minor: int) -> None:
        await drbd.create("gantry-d", minor, 0)
        await drbd.attach(minor, "/dev/d", "/dev/m", MiB(64), DrbdParameters())
        await drbd.connect(LINK, SECRET, DrbdParameters(), discard=False, allow_two=False)
        await drbd.promote("gantry-d", minor, force=False)
        await drbd.remove("gantry-d")

    changes: list[tuple[object, ...]] = []
    monkeypatch.setattr(netlink, "create", lambda *what: changes.append(what))
    monkeypatch.setattr(netlink, "remove", lambda *what: changes.append(what))
    monkeypatch.setattr(netlink, "promote", lambda *what, force: changes.append((*what, force)))
    drbd = eight(programs := Programs())
    run(activate(7))
    words = [line.split()[:2] for line in programs.ran]
    assert words == [["drbdsetup", "attach"]]
    assert changes == [("gantry-d", 7), ("gantry-d", 7, False), ("gantry-d",)]
    assert len(told) == 1


@pytest.mark.parametrize("version", ["8.4.11", "9.2.16"])
def test_what_is_asked_of_one_device_needs_no_look_at_all_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str
) -> None:
    """The module writes about each of them for whoever reads its file in ``/proc``."""
    root = system(tmp_path, version=version)
    (root / "proc/drbd").unlink()
    programs = Programs()
    monkeypatch.setattr(netlink, "demote", lambda *_: programs.ran.append("asks secondary"))
    run(LinuxDrbd(programs, root=root).demote("gantry-d", 7))
    assert [line.split()[1] for line in programs.ran] == ["secondary"]


@pytest.mark.parametrize("version", ["8.4.11", "9.2.16"])
def test_volumes_that_may_hang_are_detached_by_a_program_which_can_be_killed(
    tmp_path: Path, version: str
) -> None:
    run(LinuxDrbd(programs := Programs(), root=system(tmp_path, version=version)).detach(7))
    assert programs.ran == ["drbdsetup detach 7"]


def test_metadata_is_made_only_where_there_is_none(eight: Module, tmp_path: Path) -> None:
    (volume := tmp_path / "meta").write_bytes(bytes(8191) + b"\1")
    drbd = eight(programs := Programs())
    run(drbd.ensure_meta(3, str(volume)))
    assert [line.split()[-1] for line in programs.ran] == ["create-md"]
    volume.write_bytes(bytes(4095) + b"\1")
    drbd = eight(programs := Programs())
    run(drbd.ensure_meta(3, str(volume)))
    assert [line.split()[-1] for line in programs.ran] == ["get-gi"]
    drbd = eight(programs := Programs("get-gi", status=1))
    run(drbd.ensure_meta(3, str(volume)))
    known = ("get-gi", "create-md")
    words = [word for line in programs.ran for word in line.split() if word in known]
    assert words == ["get-gi", "get-gi", "create-md"]  # nor any of another version
    drbd = eight(programs := Programs("get-gi", status=20))
    with pytest.raises(CommandFailed):
        run(drbd.ensure_meta(3, str(volume)))
    assert [line.split()[-1] for line in programs.ran] == ["get-gi"]


def test_a_volume_that_cannot_be_read_gets_no_metadata(eight: Module, tmp_path: Path) -> None:
    drbd = eight(programs := Programs())
    with pytest.raises(NodeFailure, match="cannot be read"):
        run(drbd.ensure_meta(3, str(tmp_path / "gone")))
    assert programs.ran == []


def test_what_was_in_use_when_its_node_went_down_is_brought_up_to_date_first(eight: Module) -> None:
    async def refuses(*argv: str, timeout_s: float) -> Finished:
        ran.append(argv[1] if argv[0] == "drbdsetup" else argv[-1])
        if ran == ["attach"]:
            raise CommandFailed("No.", status=10, stderr="Unclean meta-data found: apply-al")
        return Finished(b"", b"")

    ran: list[str] = []
    run(eight(refuses).attach(7, "/dev/d", "/dev/m", MiB(64), DrbdParameters()))
    assert ran == ["attach", "apply-al", "attach"]


@pytest.mark.parametrize(
    ("version", "magic", "expected"),
    [
        ("8.4.11", 0x8374026C, ["apply-al", "attach"]),
        ("8.4.11", 0x8374026B, ["attach"]),
        ("9.2.16", 0x8374026C, ["attach"]),
    ],
)
def test_metadata_that_8_4_would_refuse_are_brought_up_to_date_before_they_are_attached(
    tmp_path: Path, version: str, magic: int, expected: list[str]
) -> None:
    meta = tmp_path / "meta"
    meta.write_bytes(bytes(60) + magic.to_bytes(4, "big") + bytes(4096))
    drbd = LinuxDrbd(programs := Programs(), root=system(tmp_path, version=version))
    run(drbd.attach(7, "/dev/d", str(meta), MiB(64), DrbdParameters()))
    known = ("apply-al", "attach")
    assert [word for line in programs.ran for word in line.split() if word in known] == expected


def test_volumes_that_cannot_be_attached_are_tried_once(eight: Module) -> None:
    drbd = eight(programs := Programs("attach", stderr="Low.dev. smaller than requested"))
    with pytest.raises(CommandFailed):
        run(drbd.attach(7, "/dev/d", "/dev/m", MiB(64), DrbdParameters()))
    assert len(programs.ran) == 1


def test_device_that_is_open_is_told_from_other_failures(
    eight: Module, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    open_one = "0: State change failed: (-12) Device is held open by someone"
    root = system(tmp_path, version="9.2.16")
    with pytest.raises(InUse):
        run(LinuxDrbd(Programs("secondary", stderr=open_one), root=root).demote("gantry-d", 0))
    other = Programs("secondary", stderr="0: Failure: (127)")
    with pytest.raises(CommandFailed):
        run(LinuxDrbd(other, root=root).demote("gantry-d", 0))
    answers(monkeypatch, [Message(0, line.HELD_OPEN, {})])
    with pytest.raises(InUse):
        run(eight(Programs()).demote("gantry-d", 0))


def test_module_that_serves_is_not_complained_of(tmp_path: Path) -> None:
    assert run(LinuxDrbd(root=system(tmp_path)).state()) == ModuleState("8.4.11")


def test_what_is_wrong_with_the_module_is_told_with_what_to_do(tmp_path: Path) -> None:
    assert "modprobe drbd" in run(LinuxDrbd(root=tmp_path).state()).problem
    changes: tuple[tuple[dict[str, Any], str], ...] = (
        ({"version": "9.0.32-1"}, "version 9.0.32-1; needed is 8.4"),
        ({"helper": "/sbin/drbdadm"}, "runs /sbin/drbdadm when something happens"),
        ({"most": 0}, "has memory for 0 devices and has 1"),
    )
    for number, (change, words) in enumerate(changes):
        (root := tmp_path / str(number)).mkdir()
        state = run(LinuxDrbd(root=system(root, **change)).state())
        assert words in state.problem
        assert state.version == change.get("version", "8.4.11")
        assert state.helper == change.get("helper", "")
