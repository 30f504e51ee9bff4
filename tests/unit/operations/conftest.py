"""What some tests of placement begin with."""

from typing import Any

import pytest

from common.model.template import DiskTemplate
from coordinator.disks import kinds
from tests.unit.operations.mirrored import MIRRORED


@pytest.fixture
def mirrored_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files on two nodes stand for mirrored disks: placement looks at where they are only."""
    every: Any = kinds.KINDS
    monkeypatch.setitem(every, DiskTemplate.DRBD, MIRRORED)
