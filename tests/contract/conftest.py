"""What contracts of a noded behind real TLS begin with."""

from pathlib import Path

import pytest

from tests.support.https_node import TestCluster


@pytest.fixture
def cluster(tmp_path: Path) -> TestCluster:
    return TestCluster(tmp_path / "identities")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where the node beta keeps its files."""
    return tmp_path / "beta"
