"""The disk of a TPM goes where its instance goes, and stays as long as the TPM is wanted."""

import pytest
from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest
from common.names import DiskId
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.cluster.verify_config import VerifyConfig
from coordinator.operations.cluster.verify_group import VerifyGroup
from coordinator.operations.devices import DiskRequest
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.reboot import RebootInstance
from coordinator.state.rows import Put
from tests.sim.settings import WEB1, create, disk
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster

TPM = {"tpm": "state"}
WITH_TPM = replace(
    create("web1", "beta"),
    disks=(DiskRequest(size="64M"), DiskRequest(size="4M", name="state")),
    hvparams=TPM,
)


def told(cluster: SimulatedCluster, node: str) -> str:
    """Return the disk of which a node was told that it is the TPM's."""
    guests = cluster.machines[node].guests
    return str(guests._guests[cluster.config.instance("web1").uuid].spec.parameters["tpm"])


def state(cluster: SimulatedCluster) -> DiskId:
    _, found = cluster.config.disks_of(cluster.config.instance("web1"))
    return found.uuid


def test_the_disk_of_a_tpm_goes_with_its_instance_and_cannot_be_taken_away() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(WITH_TPM)
            assert told(cluster, "beta") == state(cluster)
            for change in (disk("remove", 1), disk("modify", 1, name="other")):
                with pytest.raises(InvalidRequest, match="cannot keep its state on “state”"):
                    await cluster.run(ModifyInstance(instance_name=WEB1, disks=(change,)))
            with pytest.raises(InvalidRequest, match="may only be read"):
                read_only = disk("modify", 1, mode="ro")
                await cluster.run(ModifyInstance(instance_name=WEB1, disks=(read_only,)))
            await cluster.run(MigrateInstance(instance_name=WEB1, target_node="gamma"))
            assert told(cluster, "gamma") == state(cluster)
            await cluster.run(FailOverInstance(instance_name=WEB1, target_node="beta"))
            assert told(cluster, "beta") == state(cluster)
            assert cluster.machines["beta"].guests.uses(state(cluster))
            assert await cluster.run(VerifyConfig()) is True

    simulate(scenario())


def test_no_other_disk_gets_the_name_of_a_tpms() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(WITH_TPM)
            added = disk("add", size="4M", name="state")
            for change in (added, disk("modify", 0, name="state")):
                with pytest.raises(InvalidRequest, match="cannot both be called “state”"):
                    await cluster.run(ModifyInstance(instance_name=WEB1, disks=(change,)))
            await cluster.run(MigrateInstance(instance_name=WEB1, target_node="gamma"))
            assert told(cluster, "gamma") == state(cluster)

    simulate(scenario())


def test_a_tpm_is_given_none_of_two_disks_of_one_name() -> None:
    """Which an older version has let be."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(replace(WITH_TPM, hvparams={}))
            web1 = cluster.config.instance("web1")
            twins = [Put(replace(each, name="state")) for each in cluster.config.disks_of(web1)]
            assert len(twins) > 1
            await cluster.master.running.store.commit(twins)
            with pytest.raises(InvalidRequest, match="two of its disks have this name"):
                await cluster.run(ModifyInstance(instance_name=WEB1, hvparams=TPM))
            await cluster.run(ModifyInstance(instance_name=WEB1, hvparams={"tpm": state(cluster)}))

    simulate(scenario())


def test_a_guest_moves_with_the_tpm_that_it_has_and_with_no_other() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(WITH_TPM)
            await cluster.run(ModifyInstance(instance_name=WEB1, hvparams={"tpm": "default"}))
            with pytest.raises(Conflict, match="other tpm since it was started"):
                await cluster.run(MigrateInstance(instance_name=WEB1, target_node="gamma"))
            await cluster.run(RebootInstance(instance_name=WEB1))
            await cluster.run(ModifyInstance(instance_name=WEB1, hvparams=TPM))
            with pytest.raises(Conflict, match="other tpm since it was started"):
                await cluster.run(MigrateInstance(instance_name=WEB1, target_node="gamma"))

    simulate(scenario())


def test_a_guest_that_has_lost_its_tpm_is_named_until_it_has_one_again() -> None:
    async def scenario() -> None:
        async with simulated_cluster(candidates=1) as cluster:
            await cluster.run(WITH_TPM)
            (guest,) = cluster.machines["beta"].guests._guests.values()
            guest.lost_tpm = True
            assert "web1: its TPM on beta has ended" in await found(cluster)
            assert await in_lists(cluster) == "running, without its TPM, which has ended"
            await cluster.run(RebootInstance(instance_name=WEB1))
            assert "TPM" not in await found(cluster)
            assert await in_lists(cluster) == "running"

    async def found(cluster: SimulatedCluster) -> str:
        job = await cluster.finished(await cluster.submit(VerifyGroup(group_name="default")))
        return "\n".join(entry.message for entry in job.ops[0].log)

    async def in_lists(cluster: SimulatedCluster) -> str:
        ((state,),) = await cluster.master.luxi("QueryInstances", (), ["guest_state"])
        return str(state)

    simulate(scenario())


def test_a_tpm_without_a_disk_is_refused_before_anything_is_made_and_told_by_verify() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            with pytest.raises(InvalidRequest, match="none of its disks has this name"):
                await cluster.run(replace(create("web1", "beta"), hvparams=TPM))
            await cluster.run(create("web1", "beta"))
            (guest,) = cluster.machines["beta"].guests._guests.values()
            assert "tpm" not in guest.spec.parameters  # which an older node would refuse
            with pytest.raises(InvalidRequest, match="none of its disks has this name"):
                await cluster.run(ModifyInstance(instance_name=WEB1, hvparams=TPM))
            with pytest.raises(InvalidRequest, match="The TPM of web1"):
                await cluster.run(ModifyCluster(hvparams={"kvm": TPM}))

    simulate(scenario())
