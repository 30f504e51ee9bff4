"""What is told of instances to who asks for all: Ganeti's own commands do."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import NotFound
from common.names import InstanceName
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.query_data import QueryInstanceData
from coordinator.operations.node.modify import ModifyNode
from tests.sim.settings import GAMMA, WEB1, create, mirrored
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster


def tell(story: Callable[[SimulatedCluster], Awaitable[None]]) -> None:
    """Begin with web1 running on gamma, its disk on beta, too."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(mirrored())
            await story(cluster)

    simulate(scenario())


async def about(cluster: SimulatedCluster, **asked: Any) -> dict[str, Any]:
    told = await cluster.run(QueryInstanceData(instances=(WEB1,), **asked))
    assert list(told) == ["web1"]
    found: dict[str, Any] = told["web1"]
    return found


def test_both_ends_of_a_mirrored_disk_are_told_and_its_secret_is_not() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        told = await about(cluster)
        (disk,) = told["disks"]
        assert disk["drbd_info"] == {
            "primary_node": "gamma", "primary_minor": 0, "secondary_node": "beta",
            "secondary_minor": 0, "port": 11000,
        }  # fmt: skip
        whole = ["/dev/drbd0", 147, 0, None, None, False, 1]
        assert (disk["pstatus"], disk["sstatus"]) == (whole, whole)
        (record,) = cluster.config.disks_of(cluster.config.instance("web1"))
        assert disk["logical_id"] == [*record.nodes, 11000, 0, 0, None]
        assert record.backing.secret not in str(told)  # type: ignore[union-attr]
        assert [(child["dev_type"], child["size"]) for child in disk["children"]] == [
            ("plain", 64), ("plain", 128),
        ]  # fmt: skip
        assert all(child["pstatus"] for child in disk["children"])

    tell(story)


def test_a_mirror_without_its_second_copy_is_told_to_be_degraded() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.lose_power("beta")
        await cluster.settle(30.0)
        (disk,) = (await about(cluster))["disks"]
        assert disk["pstatus"][5] is True
        assert disk["sstatus"] is None

    tell(story)


def test_it_is_told_how_it_runs_only_by_nodes_that_are_asked_and_answer() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        told = await about(cluster)
        assert (told["run_state"], told["config_state"], told["snodes"]) == ("up", "up", ["beta"])
        told = await about(cluster, static=True)
        assert (told["run_state"], told["disks"][0]["pstatus"]) == (None, None)
        await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
        assert (await about(cluster))["run_state"] is None

    tell(story)


def test_a_disk_that_is_a_file_is_told_with_its_path() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(create("web2", "beta"))
        await cluster.run(
            ModifyInstance(
                instance_name=InstanceName("web2"),
                hvparams={"vnc_bind_address": "127.0.0.1"},
            )
        )
        told = (await cluster.run(QueryInstanceData()))["web2"]
        (disk,) = told["disks"]
        kind, path = disk["logical_id"]
        assert (kind, disk["dev_type"], disk["pstatus"][0]) == ("loop", "sharedfile", path)
        ((_, _, _, mac, mode, *_),) = told["nics"]
        assert mac.startswith("aa:00:00:")
        assert mode == "bridged"
        assert told["network_port"] == 15000  # where its display is when it is started anew
        with pytest.raises(NotFound, match="web9"):
            await cluster.run(QueryInstanceData(instances=(InstanceName("web9"),)))

    tell(story)


def test_parameters_of_a_system_are_told_with_those_that_the_cluster_has_for_it() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ModifyCluster(osparams={"debian": {"mirror": "far"}}))
        own = {"root-size": "2G"}
        web2 = replace(
            create("web2", "beta"), os_type="debian+testing", osparams=own, no_install=True
        )
        await cluster.run(web2)
        told = (await cluster.run(QueryInstanceData()))["web2"]
        assert (told["os_instance"], told["os_actual"]) == (own, own | {"mirror": "far"})

    tell(story)
