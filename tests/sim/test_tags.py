"""Objects get tags and lose them, as Ganeti's rules say, and are found by them."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from common.errors import GntError, InvalidRequest, NotFound
from common.names import NetworkName
from coordinator.operations.base import Operation
from coordinator.operations.network.add import AddNetwork
from coordinator.operations.tags.add import AddTags
from coordinator.operations.tags.get import GetTags
from coordinator.operations.tags.remove import RemoveTags
from coordinator.operations.tags.search import SearchTags
from coordinator.state.tagged import Tagged
from tests.sim.settings import create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster

LAN = NetworkName("lan")
NAMES: dict[Tagged, str | None] = {
    Tagged.CLUSTER: None, Tagged.NODE_GROUP: "default", Tagged.NODE: "gamma",
    Tagged.INSTANCE: "web1", Tagged.NETWORK: LAN,
}  # fmt: skip


def play(story: Callable[[SimulatedCluster], Awaitable[None]]) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "beta", start=False))
            await cluster.run(
                AddNetwork(network_name=NetworkName("lan"), network="198.51.100.0/24")
            )
            await story(cluster)

    simulate(scenario())


@pytest.mark.parametrize("kind", Tagged)
def test_tags_of_every_kind_are_added_told_and_removed(kind: Tagged) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        name = NAMES[kind]

        async def told() -> Any:
            return await cluster.master.luxi("QueryTags", kind, name or "")

        await cluster.run(AddTags(kind=kind, name=name, tags=("rack:7", "blue", "blue")))
        await cluster.run(AddTags(kind=kind, name=name, tags=("blue", "größe@a.b/c+d*e-f_g")))
        assert await told() == ["blue", "größe@a.b/c+d*e-f_g", "rack:7"]
        assert await cluster.run(GetTags(kind=kind, name=name)) == await told()
        await cluster.run(RemoveTags(kind=kind, name=name, tags=("größe@a.b/c+d*e-f_g", "blue")))
        assert await told() == ["rack:7"]

    play(story)


def test_tags_are_found_with_whose_they_are() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        for kind, name in NAMES.items():
            await cluster.run(AddTags(kind=kind, name=name, tags=(f"of:{kind}", "blue")))
        assert await cluster.run(SearchTags(pattern="^of:")) == [
            ["/cluster", "of:cluster"], ["/instances/web1", "of:instance"],
            ["/nodes/gamma", "of:node"], ["/nodegroup/default", "of:nodegroup"],
            ["/networks/lan", "of:network"],
        ]  # fmt: skip
        assert len(await cluster.run(SearchTags(pattern="lu.$"))) == len(NAMES)
        assert await cluster.run(SearchTags(pattern="green")) == []

    play(story)


@pytest.mark.parametrize(
    ("order", "kind", "said"),
    [
        (AddTags(kind=Tagged.CLUSTER, tags=("a b",)), InvalidRequest, "“a b” is no tag"),
        (AddTags(kind=Tagged.CLUSTER, tags=("",)), InvalidRequest, "“” is no tag"),
        (AddTags(kind=Tagged.CLUSTER, tags=("a\n",)), InvalidRequest, "is no tag"),
        (AddTags(kind=Tagged.CLUSTER, tags=("x" * 129,)), InvalidRequest, "at most 128"),
        (AddTags(kind=Tagged.CLUSTER, tags=()), InvalidRequest, "Say which tags"),
        (
            AddTags(kind=Tagged.CLUSTER, tags=tuple(map(str, range(4097)))),
            InvalidRequest, "at most 4096 tags",
        ),
        (AddTags(kind=Tagged.NODE, tags=("a",)), InvalidRequest, "Say which node"),
        (AddTags(kind=Tagged.NODE, name="omega", tags=("a",)), NotFound, "omega"),
        (RemoveTags(kind=Tagged.CLUSTER, tags=("a", "b")), NotFound, "no tag a, b"),
        (SearchTags(pattern="("), InvalidRequest, "no regular expression"),
    ],
)  # fmt: skip
def test_what_is_no_tag_or_not_there_is_refused(
    order: Operation[Any, Any], kind: type[GntError], said: str
) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        with pytest.raises(kind, match=said):
            await cluster.run(order)
        assert cluster.config.cluster.tags == ()

    play(story)
