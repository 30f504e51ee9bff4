"""What contracts begin with: a noded behind real TLS, or two ends of a mirrored disk."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.drbd_pair import DrbdPair
from tests.support.fake_pair import FakePair, FakePairOfNine
from tests.support.https_node import TestCluster
from tests.support.pairs import Pair


@pytest.fixture
def cluster(tmp_path: Path) -> TestCluster:
    return TestCluster(tmp_path / "identities")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where the node beta keeps its files."""
    return tmp_path / "beta"


@pytest.fixture(scope="module")
def emptied() -> Iterator[None]:
    """Leave no volume behind."""
    yield
    DrbdPair.remove()


@pytest.fixture(params=[FakePair, FakePairOfNine, DrbdPair], ids=["fake", "fake-9", "drbd"])
def pair(request: pytest.FixtureRequest, emptied: None) -> Pair:
    kind: Callable[[], Pair] = request.param
    return kind()
