"""Mirrored disks on nodes of two groups, which are made, and warned of."""

from typing import Any

import pytest

from common.model.job import Status
from common.model.template import DiskTemplate
from common.names import GroupName, InstanceName
from coordinator.operations.backup.export import ExportInstance
from coordinator.operations.backup.importing import ImportInstance
from coordinator.operations.base import Operation
from coordinator.operations.group.add import AddGroup
from coordinator.operations.group.assign_nodes import AssignNodes
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.recreate_disks import RecreateDisks
from coordinator.operations.instance.replace_disks import ReplaceDisks
from tests.sim.settings import BETA, GAMMA, WEB1, create, mirrored
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.seeds import seeds

ACROSS = "on nodes of two groups, alpha in default and gamma in other"


async def told(cluster: SimulatedCluster, order: Operation[Any, Any]) -> str:
    job = await cluster.finished(await cluster.submit(order))
    assert job.status is Status.SUCCESS, job.ops[0].failure
    return " ".join(entry.message for entry in job.ops[0].log)


PLAIN = create("web1", "alpha", template=DiskTemplate.PLAIN, start=False)
WITHIN = mirrored("web1", "alpha", "beta", start=False)
OTHER = InstanceName("web2")


@pytest.mark.parametrize(
    ("before", "order"),
    [
        (None, mirrored("web1", "alpha", "gamma", start=False)),
        (PLAIN, ModifyInstance(
            instance_name=WEB1, disk_template=DiskTemplate.DRBD, remote_node=GAMMA
        )),
        (WITHIN, ReplaceDisks(instance_name=WEB1, remote_node=GAMMA)),
        (WITHIN, ImportInstance(
            instance_name=OTHER, src_node=BETA, src_path=WEB1, pnode="alpha", snode=GAMMA,
        )),
    ],
    ids=["add", "modify", "replace", "import"],
)  # fmt: skip
def test_who_mirrors_across_groups_is_told_what_that_means(
    before: Operation[Any, Any] | None, order: Operation[Any, Any]
) -> None:
    async def scenario() -> None:
        async with simulated_cluster(3, seed=seeds()[0]) as cluster:
            if before:
                assert "two groups" not in await told(cluster, before)
            if isinstance(order, ImportInstance):
                await cluster.run(ExportInstance(instance_name=WEB1, target_node=BETA))
            await cluster.run(AddGroup(group_name=GroupName("other")))
            await cluster.run(AssignNodes(group_name=GroupName("other"), nodes=(GAMMA,)))
            said = await told(cluster, order)
            assert ACROSS in said
            assert "parameters of default, and allocators keep within one group" in said

    simulate(scenario())


def test_who_makes_lost_disks_anew_across_groups_is_told_what_that_means() -> None:
    async def scenario() -> None:
        async with simulated_cluster(4, seed=seeds()[0]) as cluster:
            await cluster.run(mirrored("web1", "delta", "beta", start=False))
            await cluster.run(AddGroup(group_name=GroupName("other")))
            await cluster.run(AssignNodes(group_name=GroupName("other"), nodes=(GAMMA,)))
            order = RecreateDisks(instance_name=WEB1, nodes=("alpha", GAMMA))
            for node in ("delta", BETA):
                await cluster.lose_power(node)
                cluster.machines[node].volumes.groups.clear()
                await cluster.machines[node].boot()
            assert ACROSS in await told(cluster, order)

    simulate(scenario())
