"""Where providers of external storage can be used, in Ganeti's words."""

import pytest

from common.errors import InvalidRequest
from common.names import GroupName, NodeName
from coordinator.disks.known_providers import FIELDS
from coordinator.operations.group.add import AddGroup
from coordinator.operations.group.assign_nodes import AssignNodes
from coordinator.operations.storage.diagnose import DiagnoseExternalStorage
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.shelf import Shelf

LOOK = DiagnoseExternalStorage(output_fields=FIELDS)


def put_shelf(cluster: SimulatedCluster, node: str) -> Shelf:
    return Shelf(cluster.machines[node].paths.providers()[0])


def test_a_provider_can_be_used_in_groups_of_which_every_node_has_it_whole() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            attic, gamma = GroupName("attic"), NodeName("gamma")
            await cluster.run(AddGroup(group_name=attic))
            await cluster.run(AddGroup(group_name=GroupName("empty")))
            await cluster.run(AssignNodes(group_name=attic, nodes=(gamma,)))
            assert await cluster.run(LOOK) == []
            beta = put_shelf(cluster, "beta")
            put_shelf(cluster, "gamma")
            (row,) = await cluster.run(LOOK)
            told = dict(zip(FIELDS, row, strict=True))
            assert told["name"] == "shelf"
            assert told["nodegroup_status"] == {"attic": True, "default": False, "empty": False}
            assert told["node_status"]["alpha"] == []
            parameters = [["row", "in which of the shelf's rows it is"], ["label", ""]]
            assert told["node_status"]["beta"] == [[str(beta.directory), True, "", parameters]]
            assert told["parameters"] == parameters
            put_shelf(cluster, "alpha")
            (row,) = await cluster.run(LOOK)
            assert row[FIELDS.index("nodegroup_status")]["default"]
            (beta.directory / "grow").unlink()
            (row,) = await cluster.run(LOOK)
            asked = await cluster.master.luxi("Query", "extstorage", FIELDS, None)
            assert [[value for _, value in each] for each in asked["data"]] == [row]
            told = dict(zip(FIELDS, row, strict=True))
            assert not told["nodegroup_status"]["default"]
            ((_, is_valid, problem, _),) = told["node_status"]["beta"]
            assert not is_valid
            assert "has no script “grow”" in problem

    simulate(story())


def test_a_node_that_does_not_answer_keeps_its_group_from_using_a_provider() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            for node in cluster.names:
                put_shelf(cluster, node)
            await cluster.lose_power("gamma")
            number = await cluster.submit(LOOK)
            job = await cluster.finished(number)
            (row,) = job.ops[0].result
            assert row[FIELDS.index("nodegroup_status")] == {"default": False}
            assert "gamma did not tell of its providers" in str(job.ops[0].log)

    simulate(story())


def test_providers_are_chosen_by_name_and_what_they_do_not_have_is_refused() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            put_shelf(cluster, "beta")
            look = DiagnoseExternalStorage(output_fields=("name",), names=("shelf", "rack"))
            assert await cluster.run(look) == [["shelf"]]
            with pytest.raises(InvalidRequest, match="no field “colour”; they have name, node_st"):
                await cluster.run(DiagnoseExternalStorage(output_fields=("colour",)))

    simulate(story())
