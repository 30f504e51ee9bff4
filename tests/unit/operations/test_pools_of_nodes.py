"""Placement where nodes have several pools: each has its own space, and its own promises."""

import asyncio
from collections import Counter

import pytest
from msgspec.structs import replace

from common.errors import NoCapacity
from common.model.backing import META_SIZE, Backing, DrbdBacking, LvmBacking
from common.model.cluster import Cluster
from common.model.disk import Disk
from common.model.group import Group
from common.model.instance import AdminState, Instance
from common.model.node import Node
from common.model.pool import Pool
from common.model.pool_kind import PoolKind
from common.model.stored import Stored
from common.model.template import DiskTemplate
from common.names import (
    ClusterId,
    ClusterName,
    DiskId,
    GroupId,
    GroupName,
    InstanceId,
    InstanceName,
    MiB,
    NodeId,
    NodeName,
    Port,
)
from common.noderpc.facts import NodeFacts, StorageReport
from coordinator.iallocator.requests import EvacuationMode
from coordinator.operations.devices import DiskRequest
from coordinator.operations.placement.built_in import place_here
from coordinator.operations.placement.fit import check_free_space, promise_of
from coordinator.operations.placement.look import Look
from coordinator.operations.placement.moves import OffNodes, plan_moves
from coordinator.operations.placement.promises import PlannedInstance
from coordinator.operations.placement.questions import AllocateQuestion, CapacityQuestion, answer
from coordinator.operations.placement.space import Shortage, shortages
from coordinator.state.config import Config
from coordinator.state.rows import Put
from coordinator.state.state import State
from tests.support.placing import cluster_of

NAMES = ("alpha", "beta", "gamma")
NODES = [
    Node(uuid=NodeId(name), name=NodeName(name), primary_ip="192.0.2.1", group=GroupId("g"))
    for name in NAMES
]
ALPHA, BETA, GAMMA = NODES


def group(name: str) -> Pool:
    return Pool(kind=PoolKind.VOLUME_GROUP, name=name)


SLOW, FAST = group("slow"), group("fast")


def facts(slow: int | None = 100_000, fast: int | None = 100_000) -> NodeFacts:
    reports = [
        StorageReport(pool=pool, total=MiB(100_000), free=MiB(free), usable=True)
        for pool, free in ((SLOW, slow), (FAST, fast))
        if free is not None
    ]
    return NodeFacts(
        name=NodeName("-"), version="1", boot_id="b", clock=0.0, memory_total=MiB(8192),
        memory_free=MiB(6000), memory_dom0=MiB(512), cpus=8, cpu_sockets=1, cpu_nodes=1,
        storage=tuple(reports),
    )  # fmt: skip


def volume(name: str, where: str) -> LvmBacking:
    return LvmBacking(group=where, name=name)


def mirror(name: str, where: str, meta: str) -> DrbdBacking:
    return DrbdBacking(
        data=volume(f"{name}.data", where), meta=volume(f"{name}.meta", meta), port=Port(11000),
        minors={}, secret="",
    )  # fmt: skip


def planned(
    name: str, *backings: Backing, size: int = 1000, on: tuple[Node, ...] = ()
) -> PlannedInstance:
    uuids = tuple(node.uuid for node in on)
    disks = tuple(
        Disk(uuid=DiskId(f"{name}-{number}"), size=MiB(size), backing=backing, nodes=uuids)
        for number, backing in enumerate(backings)
    )
    is_mirrored = isinstance(backings[0], DrbdBacking)
    instance = Instance(
        uuid=InstanceId(name), name=InstanceName(name), admin_state=AdminState.UP,
        primary_node=uuids[0] if uuids else NodeId(""), hypervisor="kvm",
        disk_template=DiskTemplate.DRBD if is_mirrored else DiskTemplate.PLAIN,
        disks=tuple(disk.uuid for disk in disks), beparams={"maxmem": 512, "minmem": 512},
    )  # fmt: skip
    return PlannedInstance(instance, disks)


def configured(*there: PlannedInstance) -> Config:
    items: list[Stored] = [
        Cluster(
            uuid=ClusterId("c"), name=ClusterName("test"), master=NodeId("alpha"),
            volume_group_name="slow", enabled_disk_templates=(DiskTemplate.DRBD,),
        ),
        Group(uuid=GroupId("g"), name=GroupName("default")), *NODES,
    ]  # fmt: skip
    for one in there:
        items += [one.instance, *one.disks]
    return State().apply(map(Put, items)).config


def look_at(config: Config, *reports: NodeFacts) -> Look:
    return Look(config, dict(zip((node.uuid for node in NODES), reports, strict=False)))


def test_a_disk_goes_where_its_own_pool_has_space() -> None:
    look = look_at(configured(), facts(fast=500), facts(slow=500), facts())
    for where, home in (("fast", {"beta", "gamma"}), ("slow", {"alpha", "gamma"})):
        one = planned("web1", volume("x", where))
        assert set(place_here(look.about(one.disks), one).nodes) <= home


def test_every_disk_of_an_instance_has_to_fit() -> None:
    look = look_at(configured(), facts(fast=500), facts(slow=500), facts())
    one = planned("web1", volume("x", "fast"), volume("y", "slow"))
    assert place_here(look.about(one.disks), one).nodes == ("gamma",)
    lacking = shortages(look, one)
    assert {name: why.pool.name for name, why in lacking.items() if isinstance(why, Shortage)} == {
        "alpha": "fast", "beta": "slow",
    }  # fmt: skip


def test_what_is_wrong_with_a_pool_is_told_and_not_that_it_is_full() -> None:
    silent = StorageReport(
        pool=FAST, total=MiB(0), free=MiB(0), usable=False, problem="fast did not answer."
    )
    look = look_at(configured(), replace(facts(), storage=(silent,)), facts(), facts())
    with pytest.raises(NoCapacity) as refused:
        check_free_space(look, ALPHA, planned("web1", volume("x", "fast")))
    assert refused.value.message == (
        "Node alpha cannot use the volume group fast (fast did not answer), and 1000 MiB of it "
        "are needed for web1."
    )


def test_a_mirrored_disk_takes_space_of_two_pools_on_two_nodes() -> None:
    look = look_at(configured(), facts(), facts(fast=META_SIZE - 1), facts(fast=META_SIZE))
    one = planned("web1", mirror("x", "slow", "fast"))
    assert set(place_here(look.about(one.disks), one).nodes) == {"alpha", "gamma"}
    promise = promise_of(look.config, one, [ALPHA, GAMMA])
    after = Look(look.config, look.live, (promise,))
    assert after.free_space(GAMMA, FAST) == 0
    assert after.free_space(GAMMA, SLOW) == 100_000 - 1000
    assert after.free_space(BETA, SLOW) == 100_000


def test_the_allocator_sees_the_pool_of_the_disks_in_question() -> None:
    there = planned("old", volume("o", "slow"), volume("p", "fast"), size=2000, on=(ALPHA,))
    look = look_at(configured(there), facts(slow=5000, fast=7000), facts(), facts())
    for disks, size, free, takes in (
        ((), 7000, 5000, 2000),
        (planned("new", volume("n", "fast")).disks, 9000, 7000, 2000),
    ):
        snapshot = look.about(disks).snapshot
        assert (snapshot.nodes[0].total_disk, snapshot.nodes[0].free_disk) == (size, free)
        assert snapshot.instances[0].disk == takes


def test_a_node_without_the_pool_is_left_out_and_named() -> None:
    one = planned("web1", volume("x", "fast"))
    look = look_at(configured(), facts(fast=None), facts(fast=999), facts(fast=None))
    with pytest.raises(NoCapacity) as caught:
        place_here(look.about(one.disks), one)
    assert caught.value.message == (
        "No node can take instance web1: beta comes nearest, with 999 MiB left in the volume "
        "group fast where 1000 are needed; 2 nodes lack disk space."
    )
    with pytest.raises(NoCapacity, match="alpha has nothing of the volume group fast, and"):
        check_free_space(look, ALPHA, planned("web1", volume("x", "fast"), on=(ALPHA,)))


def test_a_second_copy_goes_where_its_own_pool_has_space() -> None:
    there = planned("web1", mirror("x", "fast", "fast"), on=(ALPHA, BETA))
    question = OffNodes((InstanceName("web1"),), EvacuationMode.SECONDARY)
    for free in (1128, 1129):
        live = dict(zip(NAMES, (facts(), facts(), facts(slow=100_000, fast=free)), strict=True))
        cluster, seen = cluster_of(configured(there), live)
        if free == 1128:  # hail leaves one over
            with pytest.raises(NoCapacity, match="gamma failed: FailDisk"):
                asyncio.run(plan_moves(cluster, ["hail"], question))
        else:
            asyncio.run(plan_moves(cluster, ["hail"], question))
            assert seen.promised == [["alpha", "gamma"]]


def test_who_asks_where_it_would_go_is_told_what_nodes_lack() -> None:
    look = look_at(configured(), facts(slow=500), facts(), facts())
    question = AllocateQuestion(disk_template=DiskTemplate.DRBD, disks=(DiskRequest(size=1000),))
    told = answer(look, question)
    assert set(told["nodes"]) == {"beta", "gamma"}
    assert told["refused"] == {
        "alpha": "has 500 MiB left in the volume group slow, and 1128 MiB are needed"
    }


@pytest.mark.parametrize(
    ("template", "space", "fit"),
    [
        (DiskTemplate.FILE, [300, 250, 99], [3, 2, 0]),
        (DiskTemplate.SHAREDFILE, [300, 300, 300], [3]),
    ],
)
def test_no_more_fit_than_there_is_space_for(
    template: DiskTemplate, space: list[int], fit: list[int]
) -> None:
    config = configured()
    cluster = replace(
        config.cluster, enabled_disk_templates=(template,), file_storage_dir="/srv/files",
        shared_file_storage_dir="/srv/files",
    )  # fmt: skip
    pool = Pool(kind=PoolKind.DIRECTORY, name="/srv/files")
    reports = [
        replace(facts(), storage=(
            StorageReport(pool=pool, total=MiB(1000), free=MiB(free), usable=True),
        ))
        for free in space
    ]  # fmt: skip
    disks = (DiskRequest(size=100),)
    question = CapacityQuestion(disk_template=template, disks=disks)
    told = answer(look_at(config.apply([Put(cluster)]), *reports), question)
    assert told["count"] == sum(fit)
    if template is DiskTemplate.FILE:
        homes = Counter(node for nodes in told["placements"] for node in nodes)
        assert [homes[name] for name in NAMES] == fit
    assert set(told["refused"]) == {*NAMES}
