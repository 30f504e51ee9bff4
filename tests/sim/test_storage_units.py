"""What nodes keep disks in: listed, changed, and never repaired at the cost of data."""

from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import Conflict, GntError, InvalidRequest, NotFound
from common.model.backing import LvmBacking
from common.model.instance import Instance
from common.model.job import Status
from common.names import MiB, NodeId, NodeName
from coordinator.operations.base import read_operation
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.node.query_storage import QueryStorage
from coordinator.operations.node.repair_storage import RepairStorage
from coordinator.operations.node.storage_units import FIELDS, UnitType
from coordinator.state.rows import Put
from noded.storage.lvm.volumes import NewVolume, Volume
from tests.sim.settings import GAMMA, create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.image import GROUP, LOCAL, SHARED, uuid_of

DEVICE = f"/dev/{GROUP}"
REPAIR = RepairStorage(node_name=GAMMA, storage_type=UnitType.VOLUME_GROUP, name=GROUP)


async def listed(cluster: SimulatedCluster, **told: Any) -> list[list[Any]]:
    order = {"OP_ID": "OP_NODE_QUERY_STORAGE", "output_fields": list(FIELDS)} | told
    rows: list[list[Any]] = await cluster.run(read_operation(order))
    return rows


async def with_a_volume_on_gamma(cluster: SimulatedCluster) -> Volume:
    """Have web1's disk be a volume that only gamma has."""
    await cluster.run(create("web1", "gamma", start=False))
    web1: Instance = cluster.config.instance("web1")
    (disk,) = cluster.config.disks_of(web1)
    place = LvmBacking(group=GROUP, name=f"{disk.uuid}.disk")
    volume = Volume(place, disk.uuid, web1.uuid)
    await cluster.machines["gamma"].volumes.ensure_present([NewVolume(volume, MiB(64))])
    changed = replace(disk, backing=place, nodes=(NodeId(uuid_of("gamma")),))
    await cluster.master.running.store.commit([Put(changed)])
    return volume


def test_a_list_of_which_no_node_tells_anything_fails() -> None:
    async def story() -> None:
        async with simulated_cluster(nodes=5) as cluster:
            await cluster.lose_power("gamma")
            with pytest.raises(GntError, match="gamma"):
                await listed(cluster, nodes=["gamma"])
            assert {row[0] for row in await listed(cluster)} >= {"alpha", "beta"}
            await cluster.lose_power("beta")
            order = QueryStorage(output_fields=("node",), nodes=(NodeName("beta"), GAMMA))
            job = await cluster.finished(await cluster.submit(order))
            told = [entry.message for entry in job.ops[0].log]
            assert job.status is Status.ERROR
            assert [line.split()[1] for line in told] == ["beta", "gamma"]

    simulate(story())


def test_units_are_listed_in_ganetis_words() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(ModifyNode(node_name=GAMMA, offline=True))
            rows = await listed(cluster)
            total = 1 << 20
            assert rows == [
                [node, "sharedfile", SHARED, total, 0, total, True] for node in ("alpha", "beta")
            ]
            (row,) = await listed(cluster, storage_type="file", nodes=["beta"])
            assert row[:3] == ["beta", "file", LOCAL]
            (row,) = await listed(cluster, storage_type="lvm-pv", nodes=["alpha"])
            assert row == ["alpha", "lvm-pv", DEVICE, total, 0, total, True]
            assert await listed(cluster, storage_type="lvm-vg", name="other") == []
            (row,) = await listed(cluster, storage_type="lvm-vg", name=GROUP, nodes=["beta"])
            assert row[2] == GROUP

    simulate(story())


def test_a_node_that_does_not_tell_of_its_storage_is_left_out_and_named() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            await cluster.lose_power("gamma")
            number = await cluster.submit(
                QueryStorage(output_fields=("node",), storage_type=UnitType.PHYSICAL_VOLUME)
            )
            job = await cluster.finished(number)
            assert job.ops[0].result == [["alpha"], ["beta"]]
            assert "gamma did not tell of its storage" in str(job.ops[0].log)

    simulate(story())


@pytest.mark.parametrize(
    ("order", "kind", "says"),
    [
        ({"OP_ID": "OP_NODE_QUERY_STORAGE", "output_fields": ["colour"]}, InvalidRequest, "colour"),
        (
            {"OP_ID": "OP_NODE_MODIFY_STORAGE", "storage_type": "lvm-vg", "name": GROUP,
             "changes": {"allocatable": True}},
            InvalidRequest, "type lvm-vg cannot be changed",
        ),
        (
            {"OP_ID": "OP_NODE_MODIFY_STORAGE", "storage_type": "lvm-pv", "name": DEVICE,
             "changes": {"size": 5}},
            InvalidRequest, "whether it is allocatable",
        ),
        (
            {"OP_ID": "OP_NODE_MODIFY_STORAGE", "storage_type": "lvm-pv", "name": "/dev/sdz",
             "changes": True},
            NotFound, "has no physical volume “/dev/sdz”; it has /dev/",
        ),
        (
            {"OP_ID": "OP_REPAIR_NODE_STORAGE", "storage_type": "lvm-pv", "name": DEVICE},
            InvalidRequest, "type lvm-pv cannot be repaired",
        ),
        (
            {"OP_ID": "OP_REPAIR_NODE_STORAGE", "storage_type": "lvm-vg", "name": "other"},
            NotFound, "has no volume group “other”; it has",
        ),
        (
            {"OP_ID": "OP_REPAIR_NODE_STORAGE", "storage_type": "lvm-vg", "name": GROUP},
            Conflict, "there is nothing to repair",
        ),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(
    order: dict[str, Any], kind: type[GntError], says: str
) -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            node = {} if "QUERY" in order["OP_ID"] else {"node_name": "gamma"}
            with pytest.raises(kind, match=says):
                await cluster.run(read_operation(order | node))

    simulate(story())


def test_a_group_is_not_repaired_at_the_cost_of_the_only_copy_unless_that_is_meant() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            volume = await with_a_volume_on_gamma(cluster)
            gamma = cluster.machines["gamma"]
            gamma.physical.lose(DEVICE)
            with pytest.raises(Conflict, match=r"good copy of disk 0 of web1: there is this one"):
                await cluster.run(REPAIR)
            assert gamma.volumes.names() == [volume.name]
            number = await cluster.submit(replace(REPAIR, ignore_consistency=True))
            job = await cluster.finished(number)
            assert "disk 0 of web1: there is this one only. It is lost, as asked." in str(job.ops)
            assert gamma.volumes.names() == []

    simulate(story())


def test_disks_of_others_and_whole_ones_do_not_keep_a_group_from_being_repaired() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            volume = await with_a_volume_on_gamma(cluster)
            beta = cluster.machines["beta"]
            await beta.volumes.ensure_present([NewVolume(volume, MiB(64))])
            beta.physical.lose(DEVICE)
            await cluster.run(replace(REPAIR, node_name=cluster.config.node("beta").name))
            assert beta.volumes.names() == []
            assert cluster.machines["gamma"].volumes.names() == [volume.name]

    simulate(story())
