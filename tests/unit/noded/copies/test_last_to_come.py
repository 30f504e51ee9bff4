"""Of an instance's disks there is always one of which nobody hears before it is confirmed."""

import os
from pathlib import Path

import pytest

from noded.copies.home import Home
from noded.copies.status import Status


class Expected:
    """What noded keeps of a copy that its process tells of."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root / "8-copy-0.fetch")
        self.home.prepare()
        self.descriptor = self.home.open("status.json")
        self.status = Status(self.descriptor)
        self.status.begin(8, 0)


@pytest.fixture
def expected(tmp_path: Path) -> Expected:
    return Expected(tmp_path)


def test_what_is_on_its_way_is_to_come(expected: Expected) -> None:
    assert expected.home.is_to_come
    os.close(expected.descriptor)


def test_what_is_there_is_not_to_come(expected: Expected) -> None:
    expected.status.arrive()
    assert not expected.home.is_to_come
    os.close(expected.descriptor)


def test_what_is_confirmed_and_brought_once_more_holds_nothing_back(expected: Expected) -> None:
    """It is heard of as soon as it is there, so another one has to be the last."""
    expected.status.arrive()
    expected.home.confirm()
    expected.status.begin(8, 0)
    assert not expected.home.is_to_come
    os.close(expected.descriptor)


def test_what_is_not_known_is_not_to_come(tmp_path: Path) -> None:
    assert not Home(tmp_path / "9-copy-0.fetch").is_to_come
