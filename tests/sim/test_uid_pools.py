"""The cluster's pool of user ids, and who is told of it."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import InvalidRequest
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.specs import present_guest
from tests.sim.settings import create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster

POOL = ((70_000, 70_099), (70_200, 70_200))


def tell(story: Callable[[SimulatedCluster], Awaitable[None]]) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(ModifyCluster(uid_pool=POOL))
            await story(cluster)

    simulate(scenario())


def test_ids_are_added_to_a_pool_and_taken_from_it() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        for change, left in (
            ({"add_uids": ((70_100, 70_199),)}, [[70_000, 70_200]]),
            ({"remove_uids": ((70_001, 70_200),)}, [[70_000, 70_000]]),
            ({"uid_pool": (), "add_uids": ((5_000, 5_000),)}, [[5_000, 5_000]]),
            ({"uid_pool": ()}, []),
        ):
            await cluster.run(ModifyCluster(**change))
            told = await cluster.master.luxi("QueryClusterInfo")
            assert told["uid_pool"] == left

    tell(story)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"remove_uids": ((70_000, 70_200),)}, "does not have all of the user ids 70000-70200"),
        ({"add_uids": ((70_009, 70_000),)}, "ends before it begins: 70009-70000"),
        ({"uid_pool": ((70_009, 70_000),)}, "ends before it begins: 70009-70000"),
        ({"uid_pool": POOL}, "Nothing to change"),
    ],
)
def test_a_pool_that_makes_no_sense_is_refused_and_stays(change: Any, says: str) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        with pytest.raises(InvalidRequest, match=says):
            await cluster.run(ModifyCluster(**change))
        assert cluster.config.cluster.uid_pool == POOL

    tell(story)


@pytest.mark.parametrize("uid", [0, 999, 2**32 - 1])
def test_ids_of_the_system_are_in_no_pool(uid: int) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        with pytest.raises(InvalidRequest, match="add_uids"):
            await cluster.master.luxi(
                "SubmitJob", [{"OP_ID": "OP_CLUSTER_SET_PARAMS", "add_uids": [[uid, uid]]}]
            )

    tell(story)


def test_guests_that_shall_be_of_the_pool_are_told_which_it_is_and_others_are_not() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(create("web1", "beta"))
        order = replace(create("web2", "beta"), hvparams={"security_model": "pool"})
        await cluster.run(order)
        told = {
            name: present_guest(cluster.config, cluster.config.instance(name)).users
            for name in ("web1", "web2")
        }
        assert told == {"web1": (), "web2": POOL}

    tell(story)
