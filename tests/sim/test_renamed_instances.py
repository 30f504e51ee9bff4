"""An instance gets another name, and is the same one in everything else."""

import pytest
from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest, NotFound
from common.model.job import Status
from common.names import InstanceName
from coordinator.operations.cluster.verify import VerifyCluster
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.instance.rename import RenameInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.startup import StartInstance
from tests.sim.settings import WEB1, create
from tests.support.clock import simulate
from tests.support.cluster import simulated_cluster

SHOP = InstanceName("shop")
TO_SHOP = RenameInstance(instance_name=WEB1, new_name=SHOP)


def test_what_runs_is_renamed_and_then_moved_stopped_started_and_removed() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "beta"))
            before = cluster.config.instance("web1")
            assert await cluster.run(TO_SHOP) == "shop"
            after = cluster.config.instance("shop")
            assert (after.uuid, after.disks, after.nics) == (
                before.uuid, before.disks, before.nics,
            )  # fmt: skip
            with pytest.raises(NotFound):
                cluster.config.instance("web1")
            await cluster.run(create("web1", "beta", start=False))  # the name is free
            await cluster.run(MigrateInstance(instance_name=SHOP, target_node="gamma"))
            await cluster.run(VerifyCluster())
            await cluster.run(ShutDownInstance(instance_name=SHOP))
            await cluster.run(StartInstance(instance_name=SHOP))
            assert [g.name for g in await cluster.machines["gamma"].guest_list()] == ["shop"]
            await cluster.run(RemoveInstance(instance_name=SHOP))
            assert [each.name for each in cluster.config.sorted_instances()] == ["web1"]

    simulate(scenario())


def test_a_name_that_is_none_or_another_instances_is_refused() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "beta", start=False))
            await cluster.run(create("shop", "beta", start=False))
            with pytest.raises(Conflict, match="an instance shop already"):
                await cluster.run(TO_SHOP)
            with pytest.raises(InvalidRequest, match="no instance name"):
                await cluster.run(
                    RenameInstance(instance_name=WEB1, new_name=InstanceName("No good"))
                )

    simulate(scenario())


def test_its_own_name_is_none_that_is_taken() -> None:
    """Who sends that wants the script of its operating system to run, as Ganeti's burn-in does."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "beta", start=False))
            before = cluster.config.instance("web1")
            assert await cluster.run(RenameInstance(instance_name=WEB1, new_name=WEB1)) == "web1"
            after = cluster.config.instance("web1")
            job = await cluster.finished(
                await cluster.submit(RenameInstance(instance_name=WEB1, new_name=WEB1))
            )
            assert "is called that already" in job.ops[0].log[0].message
            assert after == replace(before, mtime=after.mtime, serial_no=after.serial_no)

    simulate(scenario())


def test_of_two_jobs_that_want_a_name_one_gets_it() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "beta", start=False))
            numbers = [
                await cluster.submit(order)
                for order in (TO_SHOP, create("shop", "beta", start=False))
            ]
            ended = [(await cluster.finished(number)).status for number in numbers]
            assert sorted(ended) == [Status.ERROR, Status.SUCCESS]
            assert cluster.config.find_instance("shop")

    simulate(scenario())
