"""What is left on a node of instances that it is not to have: deleted on request, and only that."""

from collections.abc import Awaitable, Callable

import pytest

from common.errors import NodeFailure
from coordinator.operations.cluster.verify_group import VerifyGroup
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.instance.replace_disks import ReplaceDisks
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.node.remove_leftovers import RemoveLeftovers
from tests.sim.settings import BETA, WEB1, mirrored
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.image import GROUP

CLEAN = RemoveLeftovers(node_name=BETA)


def tell(story: Callable[[SimulatedCluster], Awaitable[None]]) -> None:
    """Begin with web1 on gamma and beta, and web2 likewise."""

    async def scenario() -> None:
        async with simulated_cluster(candidates=1) as cluster:
            await cluster.run(mirrored())
            await cluster.run(mirrored("web2"))
            await story(cluster)

    simulate(scenario())


def names(cluster: SimulatedCluster) -> list[str]:
    """Return the instances of whose disks there are volumes on beta."""
    instances = cluster.config.instances
    found = cluster.machines["beta"].volumes.groups[GROUP].volumes.values()
    known = {each.instance for each in found}
    return sorted(instances[i].name if i in instances else "gone" for i in known if i)


async def found(cluster: SimulatedCluster) -> list[str]:
    findings = await cluster.run(VerifyGroup(group_name="default", findings=True))
    return [each["message"] for each in findings if "left" in each["message"]]


async def without_beta(cluster: SimulatedCluster, what: RemoveInstance | ReplaceDisks) -> None:
    """Do something while beta is off, and bring it back."""
    await cluster.lose_power("beta")
    await cluster.run(ModifyNode(node_name=BETA, offline=True, force=True))
    await cluster.run(what)
    await cluster.machines["beta"].boot()
    await cluster.run(ModifyNode(node_name=BETA, offline=False))


def test_volumes_of_a_removed_instance_are_found_and_deleted_on_request() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await without_beta(cluster, RemoveInstance(instance_name=WEB1))
        assert names(cluster) == ["gone", "web2"]
        assert all("gnt-node remove-leftovers beta" in line for line in await found(cluster))
        assert len(await found(cluster)) == 2  # data and metadata
        await cluster.run(CLEAN)
        assert (names(cluster), await found(cluster)) == (["web2"], [])

    tell(story)


def test_a_removal_without_the_primary_node_leaves_nothing_on_the_other_one() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.lose_power("gamma")
        await cluster.run(RemoveInstance(instance_name=WEB1, ignore_failures=True))
        assert names(cluster) == ["web2"]

    tell(story)


def test_old_copies_of_what_is_kept_elsewhere_now_are_deleted() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await without_beta(cluster, ReplaceDisks(instance_name=WEB1, remote_node="alpha"))
        assert names(cluster) == ["web1", "web2"]
        await cluster.run(CLEAN)
        assert names(cluster) == ["web2"]

    tell(story)


def test_what_is_not_ours_or_in_use_stays() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await without_beta(cluster, RemoveInstance(instance_name=WEB1))
        machine = cluster.machines["beta"]
        there = machine.volumes.groups[GROUP].volumes
        left = next(name for name, each in there.items() if is_gone(cluster, each.instance))
        machine.volumes.held.add(f"{GROUP}/{left}")
        with pytest.raises(NodeFailure, match="in use"):
            await cluster.run(CLEAN)
        assert left in there
        machine.volumes.held.clear()
        await cluster.run(CLEAN)
        assert names(cluster) == ["web2"]

    tell(story)


def is_gone(cluster: SimulatedCluster, instance: object) -> bool:
    return instance not in cluster.config.instances
