"""The program that LVM is, with the devices that it has made, and the module of DRBD, played."""

from functools import partial
from pathlib import Path

import pytest

from common.names import MiB
from noded.storage.drbd.eight import netlink
from noded.storage.drbd.linux import LinuxDrbd
from noded.storage.drbd.module import Connection
from noded.storage.lvm import lvm, seen, zeroing
from noded.storage.lvm.volumes import Volume
from tests.unit.noded.storage.drbd_module import Module
from tests.unit.noded.storage.lvm_program import Lvm


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Lvm:
    program = Lvm()
    monkeypatch.setattr(lvm, "execute", program.execute)
    monkeypatch.setattr(zeroing, "open_device", lambda volume, access: 99)
    monkeypatch.setattr(zeroing, "size_of", lambda descriptor: MiB(8))
    monkeypatch.setattr(zeroing, "zero", lambda *_: None)
    monkeypatch.setattr("os.fsync", lambda _: None)
    monkeypatch.setattr("os.close", lambda _: None)
    return program


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> dict[Volume, str]:
    """Return LVM's UUIDs of the volumes whose device can be read, for tests to change."""
    there: dict[Volume, str] = {}
    monkeypatch.setattr(seen, "find_uuid", lambda volume: there.get(volume, ""))
    monkeypatch.setattr(seen, "can_be_read", lambda volume, uuid: there.get(volume) == uuid)
    return there


@pytest.fixture
def eight(tmp_path: Path) -> Module:
    """Return what makes a module of 8.4 that programs are run for."""
    (module := tmp_path / "eight/sys/module/drbd").mkdir(parents=True)
    (module / "version").write_text("8.4.11\n")
    return partial(LinuxDrbd, root=tmp_path / "eight")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[dict[int, bytes]]:
    """What connections the module was told to make."""
    made: list[dict[int, bytes]] = []

    def connect(_: Connection, options: dict[int, bytes]) -> None:
        made.append(options)

    monkeypatch.setattr(netlink, "connect", connect)
    return made
