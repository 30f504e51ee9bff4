"""Where storage is exclusive, allocator programs see what our own engine decides on."""

import asyncio
from pathlib import Path
from random import Random

import pytest

from common.errors import NoCapacity
from common.model.backing import LvmBacking
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
)
from common.noderpc.facts import NodeFacts, Spindles, StorageReport
from coordinator.iallocator.cluster import read_cluster
from coordinator.iallocator.fields import Fields
from coordinator.iallocator.jsontext import parse
from coordinator.iallocator.response import read_nodes, read_response
from coordinator.operations.placement.built_in import place_here
from coordinator.operations.placement.look import Look
from coordinator.operations.placement.message import ask_to_place, message_of
from coordinator.operations.placement.program import run_program
from coordinator.operations.placement.promises import PlannedInstance
from coordinator.state.rows import Put
from coordinator.state.state import State
from tests.unit.allocator.hail import HAIL, needs_hail

VG = Pool(kind=PoolKind.VOLUME_GROUP, name="vg")
SIZE = MiB(20_000)  # of each physical volume


def look_of(rng: Random) -> Look:
    """A group with exclusive storage, most often another without, and instances in both."""
    groups = [
        Group(
            uuid=GroupId(f"group-{number}"), name=GroupName(f"g{number}"),
            ndparams={"exclusive_storage": number == 0},
        )
        for number in range(rng.choice((1, 2, 2)))
    ]  # fmt: skip
    nodes = [
        Node(
            uuid=NodeId(f"node-{number}"), name=NodeName(f"n{number}.x"), primary_ip="192.0.2.1",
            group=rng.choice(groups).uuid, drained=rng.random() < 0.1,
        )
        for number in range(rng.randint(3, 8))
    ]  # fmt: skip
    there = [_planned(rng, f"i{number:02}.x", rng.choice(nodes)) for number in range(8)]
    cluster = Cluster(
        uuid=ClusterId("c"), name=ClusterName("test"), master=NodeId("node-0"),
        volume_group_name="vg", enabled_disk_templates=(DiskTemplate.PLAIN,),
        default_iallocator_params={"static-kvm-node-memory": 0},
    )  # fmt: skip
    items: list[Stored] = [cluster, *groups, *nodes, *(one.instance for one in there)]
    items += [disk for one in there for disk in one.disks]
    config = State().apply(map(Put, items)).config
    return Look(config, {node.uuid: _facts(node, there) for node in nodes})


def _planned(rng: Random, name: str, node: Node) -> PlannedInstance:
    disks = tuple(
        Disk(
            uuid=DiskId(f"{name}-{index}"), size=MiB(rng.choice((512, 4096, 16_000))),
            backing=LvmBacking(group="vg", name=f"{name}-{index}.disk"), nodes=(node.uuid,),
            spindles=rng.randint(1, 2) if node.group == "group-0" else None,
        )
        for index in range(rng.randint(1, 2))
    )  # fmt: skip
    instance = Instance(
        uuid=InstanceId(f"uuid-{name}"), name=InstanceName(name), primary_node=node.uuid,
        admin_state=AdminState.DOWN, hypervisor="kvm", disk_template=DiskTemplate.PLAIN,
        disks=tuple(disk.uuid for disk in disks), beparams={"maxmem": 512, "minmem": 512},
    )  # fmt: skip
    return PlannedInstance(instance, disks)


def _facts(node: Node, there: list[PlannedInstance]) -> NodeFacts:
    disks = [disk for one in there if one.instance.primary_node == node.uuid for disk in one.disks]
    taken, sizes = sum(disk.spindles or 0 for disk in disks), sum(disk.size for disk in disks)
    total = taken + len(node.name) + int(node.uuid[-1]) % 3
    return NodeFacts(
        name=node.name, version="1", boot_id="b", clock=0.0, memory_total=MiB(32_768),
        memory_free=MiB(30_000), memory_dom0=MiB(1024), cpus=8, cpu_sockets=1, cpu_nodes=1,
        guests={}, storage=(
            StorageReport(
                pool=VG, total=MiB(total * SIZE), free=MiB(total * SIZE - sizes), usable=True,
                spindles=Spindles(total=total, free=total - taken, smallest=SIZE, largest=SIZE),
            ),
        ),
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_the_message_reads_back_as_the_snapshot(seed: int) -> None:
    look = look_of(Random(seed))
    message = Fields(parse(message_of(look, {})), "a message")
    read, taken = read_cluster(message, kvm_node_memory=0), look.snapshot
    assert list(read.instances) == list(taken.instances)
    assert list(read.nodes) == list(taken.nodes)
    assert {node.exclusive for node in taken.nodes if node.group == 0} <= {True}
    assert all(node.free_spindles <= node.spindles for node in taken.nodes if node.exclusive)


@needs_hail
def test_debians_hail_chooses_as_our_engine_does() -> None:
    async def compare(rng: Random) -> bool:
        look = look_of(rng)
        home = rng.choice(look.config.sorted_nodes())
        new = _planned(rng, "new.x", home)
        try:
            chosen = list(place_here(look, new).nodes)
        except NoCapacity:
            chosen = None
        options, question = ["--static-kvm-node-memory=0"], ask_to_place(look, new)
        told = read_response(
            await run_program(Path(str(HAIL)), options, message_of(look, question))
        )
        assert chosen == (list(read_nodes(told, 1)) if told.success else None)
        return chosen is not None

    async def all_of_them() -> list[bool]:
        found = []
        for seed in range(25):
            try:
                found.append(await compare(Random(seed)))
            except AssertionError as error:
                error.add_note(f"seed {seed}")
                raise
        return found

    assert 5 < sum(asyncio.run(all_of_them())) < 25
