"""The program that LVM is, and the devices that it has made, played."""

import pytest

from common.names import MiB
from noded.storage.lvm import lvm, seen, zeroing
from noded.storage.lvm.volumes import Volume
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
