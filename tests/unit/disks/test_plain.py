"""What the coordinator decides about disks that are logical volumes."""

import pytest
from msgspec.structs import replace

from common.errors import InvalidRequest
from common.model.backing import LvmBacking
from common.model.cluster import Cluster
from common.model.group import Group
from common.model.pool import Pool
from common.model.pool_kind import PoolKind
from common.model.stamp import Stamp
from common.names import ClusterId, ClusterName, DiskId, GroupId, GroupName, InstanceId, NodeId
from coordinator.disks.devices import Devices
from coordinator.disks.drbd import DRBD
from coordinator.disks.kind import NewDisk
from coordinator.disks.plain import PLAIN
from coordinator.disks.wish import DiskWish
from coordinator.state.state import state_of

CLUSTER = Cluster(
    uuid=ClusterId("c"), name=ClusterName("test"), master=NodeId("alpha"), volume_group_name="vg"
)
NEW = NewDisk(InstanceId("i"), DiskId("d"), (NodeId("alpha"),), Devices((), lambda: "secret"))


def group_pool(name: str) -> Pool:
    return Pool(kind=PoolKind.VOLUME_GROUP, name=name)


def test_a_disk_is_in_the_clusters_group_or_in_the_one_asked_for() -> None:
    assert PLAIN.new_backing(CLUSTER, NEW) == LvmBacking(group="vg", name="d.disk")
    asked = NEW._replace(wish=DiskWish(vg="fast"))
    assert PLAIN.new_backing(CLUSTER, asked) == LvmBacking(group="fast", name="d.disk")
    bare = replace(CLUSTER, volume_group_name="")
    assert PLAIN.pool(bare) is None
    assert PLAIN.new_backing(bare, asked).group == "fast"
    with pytest.raises(InvalidRequest, match=r"no volume group for plain .* modify --vg-name"):
        PLAIN.new_backing(bare, NEW)


def test_a_disk_is_in_a_thin_pool_where_the_parameters_name_one() -> None:
    thin = replace(CLUSTER, diskparams={"plain": {"thin-pool": "thin"}})
    backing = PLAIN.new_backing(thin, NEW)
    assert (backing.thin_pool, backing.pools) == ("thin", (group_pool("vg/thin"),))
    assert PLAIN.pool(thin) == group_pool("vg/thin")
    of_a_group = PLAIN.new_backing(CLUSTER, NEW._replace(parameters={"thin-pool": "small"}))
    assert of_a_group.thin_pool == "small"


def test_pools_of_all_groups_of_nodes_are_known() -> None:
    plain, drbd = {"plain": {"thin-pool": "small"}}, {"drbd": {"metavg": "meta"}}
    group = Group(uuid=GroupId("g"), name=GroupName("g"), diskparams={**plain, **drbd})
    config = state_of((CLUSTER, group), Stamp()).config
    assert PLAIN.pools(config) == (group_pool("vg"), group_pool("vg/small"))
    assert DRBD.pools(config) == (group_pool("vg"), group_pool("meta"))


def test_metadata_goes_where_it_is_asked_for() -> None:
    asked = NEW._replace(wish=DiskWish(vg="fast", metavg="safe"), parameters={"metavg": "other"})
    made = DRBD.new_backing(CLUSTER, asked)
    assert made.paths == ("fast/d.data", "safe/d.meta")
    assert DRBD.new_backing(CLUSTER, asked._replace(wish=DiskWish())).meta.group == "other"
