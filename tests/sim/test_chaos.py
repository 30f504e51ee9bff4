"""Whatever breaks, nothing that was promised is lost, and nothing runs twice."""

from random import Random

import pytest

from tests.sim.chaos import Chaos
from tests.support.clock import simulate
from tests.support.cluster import simulated_cluster
from tests.support.seeds import seeds


@pytest.mark.parametrize("seed", seeds(usual=6))
def test_chaos_loses_nothing(seed: int) -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=3 + 2 * (seed % 2), seed=seed) as cluster:
            await Chaos(cluster, Random(seed)).rage(300.0)

    simulate(scenario())
