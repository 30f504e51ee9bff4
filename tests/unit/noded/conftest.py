"""What tests of a whole node, and of its identity, begin with."""

import time
from pathlib import Path

import pytest

from common.tls.authority import make_authority
from common.tls.keys import KeyPair
from tests.unit.noded.whole_node import ONE, Rig


@pytest.fixture(scope="session")
def authority() -> KeyPair:
    return make_authority(ONE, now=time.time())


@pytest.fixture
def rig(tmp_path: Path, authority: KeyPair) -> Rig:
    return Rig(tmp_path, authority)
