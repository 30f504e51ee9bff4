"""What its user has turned off stays off, where that is allowed."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import Conflict
from common.model.instance import AdminState, StateSource
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.cluster.verify_group import VerifyGroup
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.startup import StartInstance
from tests.sim.settings import WEB1, create
from tests.sim.test_watcher import at_rest, watch
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster

BY_USER = ShutDownInstance(instance_name=WEB1, admin_state_source=StateSource.USER)


def tell(
    story: Callable[[SimulatedCluster], Awaitable[None]], *, own: bool = True, all_: bool = True
) -> None:
    """Begin with web1 running on gamma, which its user may turn off if both allow it."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            if all_:
                await cluster.run(ModifyCluster(enabled_user_shutdown=True))
            order = create("web1", "gamma")
            await cluster.run(replace(order, hvparams={"user_shutdown": True} if own else {}))
            await story(cluster)

    simulate(scenario())


def turn_off(cluster: SimulatedCluster) -> None:
    uuid = cluster.config.instance("web1").uuid
    cluster.machines["gamma"].guests.turn_off(uuid)


async def shown(cluster: SimulatedCluster) -> list[Any]:
    fields = ["status", "admin_state", "admin_state_source"]
    (row,) = await cluster.master.luxi("QueryInstances", (), fields)
    return list(row)


def test_what_its_user_has_turned_off_is_noted_and_started_by_operators_only() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        turn_off(cluster)
        assert await shown(cluster) == ["USER_down", "up", "admin"]
        group = cluster.config.sorted_groups()[0].name
        found = await cluster.run(VerifyGroup(group_name=group, findings=True))
        assert [each for each in found if "web1" in str(each)] == []
        await watch(cluster)
        await at_rest(cluster)
        assert await shown(cluster) == ["USER_down", "down", "user"]
        for _ in range(2):
            jobs = len(cluster.state.jobs)
            await watch(cluster)
            assert len(cluster.state.jobs) == jobs
        await cluster.lose_power("gamma")
        await cluster.machines["gamma"].boot()
        assert await shown(cluster) == ["USER_down", "down", "user"]
        await cluster.run(StartInstance(instance_name=WEB1))
        assert await shown(cluster) == ["running", "up", "admin"]
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        assert await shown(cluster) == ["ADMIN_down", "down", "admin"]

    tell(story)


@pytest.mark.parametrize(("own", "all_"), [(True, False), (False, True)])
def test_what_may_not_be_turned_off_is_started_again(own: bool, all_: bool) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        turn_off(cluster)
        assert await shown(cluster) == ["ERROR_down", "up", "admin"]
        await watch(cluster)
        await at_rest(cluster)
        assert await shown(cluster) == ["running", "up", "admin"]

    tell(story, own=own, all_=all_)


def test_a_guest_that_died_is_started_again() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster.machines["gamma"].guests.crash(cluster.config.instance("web1").uuid)
        await watch(cluster)
        await at_rest(cluster)
        assert await shown(cluster) == ["running", "up", "admin"]

    tell(story)


def test_nobody_has_a_running_instance_taken_for_turned_off() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        with pytest.raises(Conflict, match="was not turned off by its user: it is marked up"):
            await cluster.run(BY_USER)
        turn_off(cluster)
        await cluster.run(StartInstance(instance_name=WEB1))
        with pytest.raises(Conflict, match="and its guest is running"):
            await cluster.run(BY_USER)
        assert cluster.config.instance("web1").admin_state is AdminState.UP

    tell(story)


def test_where_users_may_not_turn_off_nothing_is_noted() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        turn_off(cluster)
        with pytest.raises(Conflict, match="gnt-cluster modify --user-shutdown=yes"):
            await cluster.run(BY_USER)

    tell(story, all_=False)
