"""Where a cluster keeps disks, while there are some."""

import pytest

from common.errors import Conflict
from coordinator.operations.cluster.modify import ModifyCluster
from tests.sim.settings import create
from tests.support.clock import simulate
from tests.support.cluster import simulated_cluster


def test_a_directory_with_disks_stays_the_clusters() -> None:
    """Nodes take no disk outside of it: what is in there could not be started any more."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma", start=False))
            other = ModifyCluster(shared_file_storage_dir="/srv/elsewhere")
            with pytest.raises(Conflict, match=r"disk of web1 is in the directory .*/shared"):
                await cluster.run(other)
            await cluster.run(ModifyCluster(file_storage_dir="/srv/elsewhere"))

    simulate(scenario())
