"""A node that gets other addresses while its instances run."""

from collections.abc import Awaitable, Callable

import pytest

from common.errors import Conflict, GntError, InvalidRequest, Unreachable
from coordinator.operations.cluster.verify_group import VerifyGroup
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.node.modify import ModifyNode
from tests.sim.settings import ALPHA, BETA, GAMMA, WEB1, create, mirrored
from tests.sim.stories.reserved import reserved
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.image import ip_of

NEW, NEWER = "198.51.100.2", "203.0.113.2"


def tell(story: Callable[[SimulatedCluster], Awaitable[None]]) -> None:
    """Tell a story that begins with an instance on beta, mirrored to gamma; NEW is beta's, too."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(mirrored("web1", "beta", "gamma"))
            cluster.network.give(cluster.machines["beta"], NEW)
            await story(cluster)

    simulate(scenario())


async def guests(cluster: SimulatedCluster, machine: str) -> dict[str, str]:
    return {g.name: str(g.state) for g in await cluster.machines[machine].guest_list()}


async def troubles(cluster: SimulatedCluster) -> list[str]:
    """Return what a verification finds beside notices."""
    found = await cluster.run(VerifyGroup(group_name="default", findings=True))
    return [each["message"] for each in found if each["severity"] != "NOTICE"]


def mirrors_at(cluster: SimulatedCluster) -> set[str]:
    """Return the addresses between which disks are mirrored just now."""
    ends = [end for end in cluster.pairs.ends if end.connection is not None]
    return {end.connection.own.address for end in ends if end.connection is not None}


def behind(cluster: SimulatedCluster) -> list[str]:
    (disk,) = cluster.config.disks.values()
    return [cluster.config.nodes[uuid].name for uuid in disk.behind]


def test_guests_go_on_and_their_mirrors_use_the_new_secondary_address() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ModifyNode(node_name=BETA, secondary_ip=NEW))
        assert await guests(cluster, "beta") == {"web1": "running"}
        assert mirrors_at(cluster) == {NEW, ip_of("gamma")}
        assert behind(cluster) == []
        assert await troubles(cluster) == []
        assert cluster.pairs.lost == []
        for there, back in (("gamma", "beta"), ("beta", "gamma")):
            await cluster.run(MigrateInstance(instance_name=WEB1))
            assert await guests(cluster, there) == {"web1": "running"}
            assert await guests(cluster, back) == {}
        assert await troubles(cluster) == []

    tell(story)


def test_the_node_is_reached_at_its_new_primary_address_when_the_old_one_is_gone() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ModifyNode(node_name=BETA, primary_ip=NEW))
        cluster.network.take(ip_of("beta"))
        assert mirrors_at(cluster) == {NEW, ip_of("gamma")}  # it has no other address
        await cluster.run(create("web2", "beta"))
        await cluster.settle()
        assert await troubles(cluster) == []
        await cluster.settle()  # the end of a job is told when a majority has it
        cluster.check_replicas()
        await cluster.lose_power("alpha")
        await cluster.take_over("beta")
        await cluster.run(ShutDownInstance(instance_name=WEB1))

    tell(story)


def test_the_secondary_address_stays_when_only_the_primary_one_changes() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster.network.give(cluster.machines["beta"], NEWER)
        await cluster.run(ModifyNode(node_name=BETA, secondary_ip=NEWER))
        cluster.pairs.lost.clear()
        job = await cluster.finished(
            await cluster.submit(ModifyNode(node_name=BETA, primary_ip=NEW))
        )
        assert not any("mirror" in entry.message for entry in job.ops[0].log)
        assert mirrors_at(cluster) == {NEWER, ip_of("gamma")}
        await cluster.run(ModifyNode(node_name=BETA, secondary_ip=NEW))
        assert cluster.config.node(BETA).secondary_ip == ""  # the same as the primary one

    tell(story)


def test_a_master_gets_another_address_and_stays_master() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster.network.give(cluster.machines["alpha"], NEWER)
        await cluster.run(ModifyNode(node_name=ALPHA, primary_ip=NEWER))
        cluster.network.take(ip_of("alpha"))
        await cluster.settle()
        await cluster.run(create("web2", "gamma"))
        await cluster.crash_master()
        await cluster.start_master("alpha")
        await cluster.run(create("web3", "alpha"))
        assert await troubles(cluster) == []

    tell(story)


def test_an_address_that_the_machine_does_not_have_is_refused() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        before = await cluster.snapshot()
        for address, why in ((NEWER, "does not answer at 203.0.113.2"), (ip_of("gamma"), "gamma")):
            for field in ("primary_ip", "secondary_ip"):
                with pytest.raises((Unreachable, Conflict), match=why):
                    await cluster.run(ModifyNode(node_name=BETA, **{field: address}))  # type: ignore[arg-type]
        for bad in ("", "0.0.0.0", "224.0.0.1", "300.1.1.1", "beta", "::"):
            with pytest.raises(InvalidRequest):
                await cluster.run(ModifyNode(node_name=BETA, primary_ip=bad))
        with pytest.raises(InvalidRequest, match="no single machine"):
            await cluster.run(ModifyNode(node_name=BETA, secondary_ip="0.0.0.0"))
        with pytest.raises(InvalidRequest, match="by themselves"):
            await cluster.run(ModifyNode(node_name=BETA, primary_ip=NEW, drained=True))
        cluster.network.give(
            cluster.machines["delta" if "delta" in cluster.machines else "gamma"], NEWER
        )
        with pytest.raises(Unreachable, match="certificate"):  # another node of ours answers there
            await cluster.run(ModifyNode(node_name=BETA, primary_ip=NEWER))
        assert not before.differences(await cluster.snapshot())

    tell(story)


def test_a_secondary_address_that_the_master_does_not_reach_is_taken_by_force() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        order = ModifyNode(node_name=BETA, secondary_ip=NEWER, force=True)
        job = await cluster.finished(await cluster.submit(order))
        assert any("taken as it is, as asked" in entry.message for entry in job.ops[0].log)
        assert cluster.config.node(BETA).secondary_ip == NEWER
        with pytest.raises(Unreachable, match="does not answer at 203"):
            # Nobody has seen it there yet, and a master has to.
            await cluster.run(ModifyNode(node_name=BETA, primary_ip=NEWER, force=True))
        assert cluster.config.node(BETA).primary_ip == ip_of("beta")

    tell(story)


def test_of_what_is_only_reserved_no_copies_are_looked_for() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(RemoveInstance(instance_name=WEB1))
        await cluster.run(reserved(mirrored("web2", "gamma", "beta")))
        await cluster.lose_power("gamma")
        await cluster.run(ModifyNode(node_name=BETA, secondary_ip=NEW))
        assert cluster.config.node(BETA).secondary_ip == NEW

    tell(story)


def test_disks_whose_copies_are_not_equal_keep_the_address_as_it_is() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        (disk,) = cluster.config.disks.values()
        cluster.machines["beta"].drbd.fail_volumes(f"gantry-{disk.uuid}")
        with pytest.raises(Conflict, match="web1 cannot do without one of its copies"):
            await cluster.run(ModifyNode(node_name=BETA, secondary_ip=NEW))
        assert cluster.config.node(BETA).secondary_ip == ""
        assert await guests(cluster, "beta") == {"web1": "running"}

    tell(story)


@pytest.mark.parametrize("master", ["alpha", "beta"])
def test_ends_that_do_not_meet_at_the_new_address_go_back_to_the_old_one(master: str) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        if master != cluster.master.name:
            await cluster.crash_master()
            await cluster.take_over(master)
        # With --force the master's word is taken that the other node reaches it.
        with pytest.raises(GntError):
            await cluster.run(ModifyNode(node_name=BETA, secondary_ip=NEWER, force=True))
        assert cluster.config.node(BETA).secondary_ip == ""
        assert await guests(cluster, "beta") == {"web1": "running"}
        await cluster.settle(60)
        assert mirrors_at(cluster) == {ip_of("beta"), ip_of("gamma")}
        assert cluster.pairs.lost == []

    tell(story)


def test_an_offline_node_is_found_at_its_new_address_when_it_is_back() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.lose_power("gamma")
        await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
        await cluster.run(ModifyNode(node_name=GAMMA, primary_ip=NEWER))
        cluster.network.give(cluster.machines["gamma"], NEWER)
        cluster.network.take(ip_of("gamma"))
        await cluster.machines["gamma"].boot()
        await cluster.run(ModifyNode(node_name=GAMMA, offline=False))
        await cluster.run(create("web2", "gamma"))

    tell(story)
