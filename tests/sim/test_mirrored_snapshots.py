"""What an operator does with snapshots of disks that are on two nodes."""

from collections.abc import Awaitable, Callable

import pytest

from common.errors import Conflict, InvalidRequest
from common.model.job import Status
from common.names import NodeName
from coordinator.operations.base import Operation
from coordinator.operations.cluster.verify_group import VerifyGroup
from coordinator.operations.instance.activate_disks import ActivateDisks
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.instance.remove_snapshot import RemoveSnapshot
from coordinator.operations.instance.replace_disks import ReplaceDisks
from coordinator.operations.instance.rollback import RollBack
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.snapshot import TakeSnapshot
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.node.remove_leftovers import RemoveLeftovers
from noded.storage.drbd.mirror import resource_of
from tests.sim.mirrored_pair import behind, bring_back, homes, lose
from tests.sim.settings import BETA, GAMMA, WEB1
from tests.sim.stories.snapshots import (
    REMOVE,
    ROLL_BACK,
    mirrored_with_snapshot,
)
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster

STOP = ShutDownInstance(instance_name=WEB1)
START = StartInstance(instance_name=WEB1)
FAIL_OVER = FailOverInstance(instance_name=WEB1)


def tell(story: Callable[[SimulatedCluster], Awaitable[None]]) -> None:
    """Begin with web1 on gamma and beta, and with what was written since a snapshot on gamma."""

    async def scenario() -> None:
        async with simulated_cluster(candidates=1) as cluster:
            await mirrored_with_snapshot(cluster)
            await story(cluster)
            assert not cluster.pairs.lost, "what was acknowledged is gone"

    simulate(scenario())


def contents(cluster: SimulatedCluster, node: str) -> list[str]:
    return sorted(cluster.machines[node].contents.values())


def break_copy(cluster: SimulatedCluster, node: str) -> None:
    """Have the volumes of web1's disk make errors on a node."""
    config = cluster.config
    (disk,) = config.disks_of(config.instance("web1"))
    cluster.machines[node].drbd.fail_volumes(resource_of(disk.uuid))


async def findings(cluster: SimulatedCluster) -> str:
    job = await cluster.finished(await cluster.submit(VerifyGroup(group_name="default")))
    return "\n".join(entry.message for entry in job.ops[0].log if "snapshot" in entry.message)


def test_the_node_of_the_guest_alone_keeps_what_was_there() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        assert contents(cluster, "gamma") == ["first", "second"]
        assert contents(cluster, "beta") == ["second"]
        assert not await findings(cluster)

    tell(story)


def test_the_node_that_has_a_snapshot_is_told_wherever_the_instance_is() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(FAIL_OVER)
        answer = await cluster.master.luxi("Query", "instance", ["pnode", "disk.snapshots"], None)
        (((_, home), (_, ((kept,),))),) = answer["data"]
        assert (home, kept["name"], kept["node"]) == ("beta", "before", "gamma")

    tell(story)


def test_both_copies_are_as_they_were_after_going_back() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(STOP)
        await cluster.run(ROLL_BACK)
        assert contents(cluster, "gamma") == ["first", "first"]
        assert contents(cluster, "beta") == ["first"]
        assert behind(cluster) == []
        await cluster.run(START)
        await cluster.run(FAIL_OVER)
        assert homes(cluster) == ["beta", "gamma"]

    tell(story)


def test_who_does_not_wait_for_the_second_copy_cannot_fail_over_to_it_before_it_is_there() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(STOP)
        await cluster.run(RollBack(instance_name=WEB1, name="before", wait_for_sync=False))
        assert (contents(cluster, "beta"), behind(cluster)) == (["second"], ["beta"])
        with pytest.raises(Conflict, match="disk 0 is known to be behind"):
            await cluster.run(FAIL_OVER)
        await cluster.run(ActivateDisks(instance_name=WEB1, wait_for_sync=True))
        assert (contents(cluster, "beta"), behind(cluster)) == (["first"], [])

    tell(story)


def test_who_has_failed_over_goes_back_where_the_snapshot_is() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(FAIL_OVER)
        await cluster.run(STOP)
        with pytest.raises(Conflict, match="is on gamma, and web1 on beta: “gnt-instance failover"):
            await cluster.run(ROLL_BACK)
        assert not await findings(cluster)
        await cluster.run(FAIL_OVER)
        await cluster.run(ROLL_BACK)
        assert contents(cluster, "beta") == ["first"]

    tell(story)


def test_going_back_on_one_node_loses_no_snapshot_on_the_other() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(FAIL_OVER)
        await cluster.run(TakeSnapshot(instance_name=WEB1, name="on-beta"))
        await cluster.run(FAIL_OVER)
        await cluster.run(STOP)
        with pytest.raises(Conflict, match="given up while there are snapshots of it on beta: on-"):
            await cluster.run(ROLL_BACK)
        await cluster.run(RemoveSnapshot(instance_name=WEB1, name="on-beta"))
        await cluster.run(ROLL_BACK)
        assert contents(cluster, "beta") == ["first"]

    tell(story)


def test_going_back_needs_the_other_node() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await lose(cluster, BETA)
        await cluster.run(STOP)
        with pytest.raises(Conflict, match="beta is marked offline"):
            await cluster.run(ROLL_BACK)
        assert contents(cluster, "gamma") == ["first", "second"]

    tell(story)


def test_going_back_gives_nothing_up_before_both_nodes_have_answered() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(STOP)
        cluster.network.isolate("beta")
        job = await cluster.finished(await cluster.submit(ROLL_BACK))
        assert job.status is Status.ERROR
        assert not any("give up" in entry.message for entry in job.ops[0].log)
        assert (contents(cluster, "gamma"), behind(cluster)) == (["first", "second"], [])
        cluster.heal()
        await cluster.settle(30.0)
        await cluster.run(ROLL_BACK)
        assert contents(cluster, "beta") == ["first"]

    tell(story)


def test_a_copy_that_is_behind_is_not_made_the_only_one() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        break_copy(cluster, "gamma")
        await cluster.settle(1.0)
        await cluster.run(STOP)
        assert behind(cluster) == ["gamma"]
        with pytest.raises(Conflict, match="The copy of web1 on gamma is behind"):
            await cluster.run(ROLL_BACK)

    tell(story)


@pytest.mark.parametrize(
    "operation",
    [
        ReplaceDisks(instance_name=WEB1, on_primary=True),
        FailOverInstance(instance_name=WEB1, target_node=NodeName("alpha")),
    ],
)
def test_the_copy_beside_a_snapshot_is_not_given_up(operation: Operation[object, object]) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        with pytest.raises(Conflict, match="while there are snapshots of it on gamma: before"):
            await cluster.run(operation)

    tell(story)


def test_the_other_copy_may_be_made_anew_elsewhere() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ReplaceDisks(instance_name=WEB1, remote_node="alpha"))
        await cluster.run(STOP)
        await cluster.run(ROLL_BACK)
        assert contents(cluster, "alpha") == ["first"]
        await cluster.run(FAIL_OVER)
        with pytest.raises(Conflict, match="while there are snapshots of it on gamma: before"):
            await cluster.run(ReplaceDisks(instance_name=WEB1, remote_node="beta"))

    tell(story)


def test_a_copy_that_is_not_good_is_not_kept() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        break_copy(cluster, "gamma")
        with pytest.raises(InvalidRequest, match="The copy of disk 0 there is without its volume"):
            await cluster.run(TakeSnapshot(instance_name=WEB1, name="later"))

    tell(story)


def test_what_a_dead_node_has_kept_can_be_forgotten_and_is_deleted_when_it_is_back() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await lose(cluster, GAMMA)
        await cluster.run(FAIL_OVER)
        with pytest.raises(Conflict, match="while there are snapshots of it on gamma: before"):
            await cluster.run(ReplaceDisks(instance_name=WEB1, remote_node="alpha"))
        await cluster.run(REMOVE)
        await bring_back(cluster, GAMMA)
        assert len(cluster.machines["gamma"].volumes.names()) == 3
        await cluster.run(RemoveLeftovers(node_name=GAMMA))
        assert len(cluster.machines["gamma"].volumes.names()) == 2

    tell(story)


def test_verify_names_a_snapshot_that_the_other_node_has_lost() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(FAIL_OVER)
        (group,) = cluster.machines["gamma"].volumes.groups.values()
        (name,) = (name for name, each in group.volumes.items() if each.origin)
        del group.volumes[name]
        assert "the snapshot before of disk 0 is missing on gamma" in await findings(cluster)
        await cluster.run(RemoveSnapshot(instance_name=WEB1, name="before"))
        assert not await findings(cluster)

    tell(story)


def test_a_removed_instance_leaves_no_snapshot_on_either_node() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(FAIL_OVER)
        await cluster.run(RemoveInstance(instance_name=WEB1))
        for node in ("beta", "gamma"):
            assert cluster.machines[node].volumes.names() == []

    tell(story)
