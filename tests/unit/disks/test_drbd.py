"""What the coordinator decides about mirrored disks."""

from itertools import permutations

import pytest
from msgspec.structs import replace

from common.errors import InvalidRequest
from common.model.backing import DrbdBacking
from common.model.cluster import Cluster
from common.model.disk import Disk
from common.model.instance import Instance
from common.model.node import NodeRef
from common.model.pool import Pool
from common.model.pool_kind import PoolKind
from common.model.template import DiskTemplate
from common.names import ClusterId, ClusterName, DiskId, InstanceId, InstanceName, MiB, NodeId
from common.noderpc.disks import Access, MirrorEnd
from coordinator.disks.devices import Devices
from coordinator.disks.drbd import DRBD, again_on
from coordinator.disks.kind import NewDisk
from coordinator.state.rows import Put
from tests.support.image import first_state, uuid_of

CLUSTER = Cluster(
    uuid=ClusterId("c"), name=ClusterName("test"), master=NodeId("alpha"), volume_group_name="vg"
)
ALPHA, BETA, GAMMA = (
    first_state(("alpha", "beta", "gamma"), 3).config.node(name).ref
    for name in ("alpha", "beta", "gamma")
)


def backing(*nodes: NodeRef) -> DrbdBacking:
    holders = tuple(node.uuid for node in nodes)
    devices = Devices((), lambda: "secret")
    return DRBD.new_backing(CLUSTER, NewDisk(InstanceId("i"), DiskId("d"), holders, devices))


def test_each_node_gets_two_volumes_and_a_device() -> None:
    made = backing(ALPHA, BETA)
    assert made.paths == ("vg/d.data", "vg/d.meta")
    assert made.minors == {ALPHA.uuid: 0, BETA.uuid: 0}
    pool = Pool(kind=PoolKind.VOLUME_GROUP, name="vg")
    assert DRBD.pool(CLUSTER) == pool
    assert made.takes(MiB(1024), pool) == DRBD.traits.disk_space([MiB(1024)])


def test_a_cluster_without_a_volume_group_is_told_how_to_set_it() -> None:
    bare = replace(CLUSTER, volume_group_name="")
    assert DRBD.pool(bare) is None
    with pytest.raises(InvalidRequest, match="gnt-cluster modify --vg-name"):
        DRBD.new_backing(bare, NewDisk(InstanceId("i"), DiskId("d"), (), Devices((), str)))


def test_nodes_are_told_where_both_ends_are() -> None:
    state = first_state(("alpha", "beta"), 2)
    beta = state.config.node("beta")
    config = state.apply([Put(replace(beta, secondary_ip="198.51.100.2"))]).config
    disk = Disk(
        uuid=DiskId("d"), size=MiB(8), backing=backing(ALPHA, BETA), nodes=(ALPHA.uuid, BETA.uuid)
    )
    instance = Instance(
        uuid=InstanceId("i"), name=InstanceName("web1"), primary_node=ALPHA.uuid,
        hypervisor="kvm", disk_template=DiskTemplate.DRBD,
    )  # fmt: skip
    assert DRBD.spec(config, instance, disk).ends == (
        MirrorEnd(node=NodeId(uuid_of("alpha")), address="192.0.2.1", minor=0),
        MirrorEnd(node=NodeId(uuid_of("beta")), address="198.51.100.2", minor=0),
    )


def test_a_node_that_stays_keeps_its_device_and_is_found_by_nobody_else() -> None:
    before = backing(ALPHA, BETA)
    disk = Disk(uuid=DiskId("d"), size=MiB(8), backing=before, nodes=(ALPHA.uuid, BETA.uuid))
    nodes, devices = (ALPHA.uuid, GAMMA.uuid), Devices([disk], lambda: "another")
    made = again_on(disk, nodes, devices, behind=(GAMMA.uuid,))
    after = made.backing
    assert isinstance(after, DrbdBacking)
    assert (made.nodes, made.behind) == (nodes, (GAMMA.uuid,))
    assert after.minors == {ALPHA.uuid: 0, GAMMA.uuid: 0}
    assert (after.port, after.secret) == (11001, "another")
    assert (after.data, after.meta) == (before.data, before.meta)


def test_ends_keep_their_order_whoever_has_the_guest_and_whoever_comes_and_goes() -> None:
    """DRBD 9 has the number of its node in metadata, and refuses those of another number."""
    config = first_state(("alpha", "beta", "gamma"), 3).config
    instance = Instance(
        uuid=InstanceId("i"), name=InstanceName("web1"), primary_node=ALPHA.uuid,
        hypervisor="kvm", disk_template=DiskTemplate.DRBD,
    )  # fmt: skip

    def numbers(disk: Disk) -> dict[NodeId, int]:
        ends = DRBD.spec(config, instance, disk).ends
        return {end.node: number for number, end in enumerate(ends)}

    for old, new in permutations((ALPHA.uuid, BETA.uuid, GAMMA.uuid), 2):
        backing_ = replace(backing(ALPHA, BETA), minors={old: 3, new: 4})
        disk = Disk(uuid=DiskId("d"), size=MiB(8), backing=backing_, nodes=(old, new))
        assert numbers(disk) == numbers(replace(disk, nodes=(new, old)))
        for _ in range(5):  # around the three, so that each comes again beside each other one
            (third,) = {ALPHA.uuid, BETA.uuid, GAMMA.uuid} - set(disk.nodes)
            left, stays = disk.nodes
            before = numbers(disk)
            disk = again_on(disk, (stays, third), Devices([disk], lambda: "another"))
            assert numbers(disk) == {stays: before[stays], third: before[left]}
            assert numbers(disk) == numbers(replace(disk, nodes=(third, stays)))


def test_a_guest_that_starts_without_the_second_copy_has_its_own_alone() -> None:
    assert [hold.access for hold in DRBD.before_start([ALPHA]).do] == [Access.ALONE]


def test_a_secondary_node_that_does_not_answer_hinders_no_stop() -> None:
    stop = DRBD.after_stop((ALPHA, BETA))
    assert [(hold.node, hold.is_optional) for hold in stop.do] == [(ALPHA, False), (BETA, True)]
