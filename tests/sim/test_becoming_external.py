"""Disks become a provider's with what is told of it, as Ganeti's --ext-params tells it."""

import pytest

from common.errors import Conflict, InvalidRequest
from common.model.backing import ExtBacking
from common.model.template import DiskTemplate
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.startup import StartInstance
from tests.sim.settings import WEB1, create
from tests.support.clock import simulate
from tests.support.cluster import simulated_cluster


def becoming(template: DiskTemplate | None, **params: str) -> ModifyInstance:
    return ModifyInstance(instance_name=WEB1, disk_template=template, ext_params=params)


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (becoming(None, provider="shelf"), "goes with -t ext"),
        (becoming(DiskTemplate.EXT), "--ext-params provider=NAME"),
        (becoming(DiskTemplate.EXT, row="7"), "--ext-params provider=NAME"),
        (becoming(DiskTemplate.EXT, provider="shelf", **{"a b": "7"}), "cannot be told"),
        (becoming(DiskTemplate.FILE, provider="shelf"), "take no “provider”"),
    ],
)
def test_what_no_provider_can_be_told_is_refused(order: ModifyInstance, said: str) -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma", start=False))
            with pytest.raises(InvalidRequest, match=said):
                await cluster.run(order)

    simulate(story())


def test_disks_become_a_providers_and_start_there() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma"))
            order = becoming(DiskTemplate.EXT, provider="shelf", row="7", deep="yes")
            with pytest.raises(Conflict, match="made anew while it is stopped only"):
                await cluster.run(order)
            await cluster.run(ShutDownInstance(instance_name=WEB1))
            await cluster.run(order)
            (disk,) = cluster.config.disks_of(cluster.config.instance("web1"))
            assert isinstance(disk.backing, ExtBacking)
            assert disk.backing.provider == "shelf"
            assert disk.backing.parameters == {"row": "7", "deep": "yes"}
            await cluster.run(StartInstance(instance_name=WEB1))
            assert cluster.machines["gamma"].guests.uses(disk.uuid)

    simulate(story())
