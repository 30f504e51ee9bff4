"""How a guest is migrated, as the operator says or as it is configured."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from common.errors import Conflict, InvalidRequest
from common.model.any_hypervisor import MigrationMode
from common.names import InstanceId
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from noded.hypervisor.fake_guest import Phase
from tests.sim.settings import WEB1, create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, outcome, simulated_cluster


def tell(story: Callable[[SimulatedCluster], Awaitable[None]]) -> None:
    """Begin with web1 running on beta."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "beta"))
            await story(cluster)

    simulate(scenario())


async def runs_meanwhile(cluster: SimulatedCluster, **how: Any) -> bool:
    """Migrate web1 to gamma; tell whether it goes on while its memory is sent."""
    uuid, guests = InstanceId(cluster.config.instance("web1").uuid), cluster.machines["beta"].guests
    job = await cluster.submit(MigrateInstance(instance_name=WEB1, target_node="gamma", **how))
    while guests.phase(uuid) is not Phase.MEMORY:
        await cluster.settle(0.01)
    before = guests.number(uuid)
    await cluster.settle(0.2)
    assert guests.phase(uuid) is Phase.MEMORY
    went_on = guests.number(uuid) > before
    assert outcome(await cluster.finished(job)) is None
    assert (await cluster.snapshot()).guests["gamma"] == {"web1": "running"}
    return went_on


@pytest.mark.parametrize(
    ("how", "goes_on"),
    [
        ({}, True),
        ({"live": True}, True),
        ({"live": False}, False),
        ({"mode": MigrationMode.LIVE}, True),
        ({"mode": MigrationMode.NON_LIVE}, False),
    ],
)
def test_a_guest_stands_still_meanwhile_only_if_that_is_asked(
    how: dict[str, Any], goes_on: bool
) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        assert await runs_meanwhile(cluster, **how) is goes_on

    tell(story)


def test_a_guest_that_runs_already_is_migrated_as_is_configured_now() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ModifyCluster(hvparams={"kvm": {"migration_mode": "non-live"}}))
        assert await runs_meanwhile(cluster) is False

    tell(story)


def test_what_contradicts_itself_is_refused() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        both = MigrateInstance(
            instance_name=WEB1, target_node="gamma", live=True, mode=MigrationMode.NON_LIVE
        )
        with pytest.raises(InvalidRequest, match="not both"):
            await cluster.run(both)

    tell(story)


def test_what_does_not_run_is_failed_over_only_if_that_is_allowed() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        order = MigrateInstance(instance_name=WEB1, target_node="gamma")
        with pytest.raises(Conflict, match="does not run on beta"):
            await cluster.run(order)
        await cluster.run(
            MigrateInstance(instance_name=WEB1, target_node="gamma", allow_failover=True)
        )
        instance = cluster.config.instance("web1")
        assert cluster.config.nodes[instance.primary_node].name == "gamma"

    tell(story)
