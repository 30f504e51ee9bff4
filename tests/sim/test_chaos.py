"""Whatever breaks, nothing that was promised is lost, and nothing runs twice."""

import pytest

from tests.sim.schedules import play
from tests.support.seeds import seeds


@pytest.mark.parametrize("seed", seeds(usual=8))
def test_chaos_loses_nothing(seed: int) -> None:
    play(seed, 300.0)
