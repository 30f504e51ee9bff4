"""Placement of mirrored instances: on two nodes, both of which are promised."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest, NoCapacity, NotFound
from common.model.cluster import Cluster as ClusterObject
from common.model.disk import Disk, FileBacking
from common.model.group import Group
from common.model.instance import AdminState, Instance
from common.model.node import Node
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
from common.noderpc.facts import NodeFacts, StorageReport
from coordinator.disks import kinds
from coordinator.disks.directory import DirectoryKind
from coordinator.iallocator.answers import Moves
from coordinator.iallocator.requests import EvacuationMode
from coordinator.operations.base import read_operation
from coordinator.operations.instance.place import Place, named_place
from coordinator.operations.placement.allocators import AllocatorFailed
from coordinator.operations.placement.choose import place_elsewhere, place_new
from coordinator.operations.placement.fit import check_still_fits
from coordinator.operations.placement.growth import promise_of_secondary, take_space
from coordinator.operations.placement.look import Look, look_for
from coordinator.operations.placement.many import place_many
from coordinator.operations.placement.moves import OffNodes, plan_moves, promises_of
from coordinator.operations.placement.promises import PlannedInstance, Promise
from coordinator.operations.planned_moves import plan_of
from coordinator.operations.registry import load_all
from coordinator.state.config import Config
from coordinator.state.rows import Put
from coordinator.state.state import State
from tests.support.disks import directory
from tests.support.placing import cluster_of

FILES = "/srv/files"
MIRRORED = DirectoryKind(
    DiskTemplate.DRBD, lambda cluster: cluster.file_storage_dir, option="-", unusable="-"
)
NAMES = ("alpha", "beta", "gamma")
NODES = {
    name: Node(
        uuid=NodeId(name), name=NodeName(name), primary_ip="192.0.2.1", group=GroupId("group")
    )
    for name in NAMES
}
ALPHA, BETA, GAMMA = NODES.values()


@pytest.fixture(autouse=True)
def mirrored_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files on two nodes stand for mirrored disks: placement looks at where they are only."""
    every: Any = kinds.KINDS
    monkeypatch.setitem(every, DiskTemplate.DRBD, MIRRORED)


def planned(name: str = "web1", *nodes: Node, memory: int = 512) -> PlannedInstance:
    uuids = tuple(node.uuid for node in nodes)
    disk = Disk(
        uuid=DiskId(f"{name}-disk"), size=MiB(1024), nodes=uuids,
        backing=FileBacking(path=f"{FILES}/{name}.raw", shared=False),
    )  # fmt: skip
    instance = Instance(
        uuid=InstanceId(name), name=InstanceName(name), admin_state=AdminState.UP,
        primary_node=uuids[0] if uuids else NodeId(""), hypervisor="kvm",
        disk_template=DiskTemplate.DRBD, disks=(disk.uuid,),
        beparams={"maxmem": memory, "minmem": memory},
    )  # fmt: skip
    return PlannedInstance(instance, (disk,))


def configured(*there: PlannedInstance) -> Config:
    items: list[Stored] = [
        ClusterObject(
            uuid=ClusterId("c"), name=ClusterName("test"), master=NodeId("alpha"),
            file_storage_dir=FILES, enabled_disk_templates=(DiskTemplate.DRBD,),
        ),
        Group(uuid=GroupId("group"), name=GroupName("default")),
        Group(uuid=GroupId("other"), name=GroupName("other")),
        *NODES.values(),
    ]  # fmt: skip
    for one in there:
        items += [one.instance, *one.disks]
    return State().apply(map(Put, items)).config


def facts(memory: int = 4096, space: int = 100_000) -> NodeFacts:
    report = StorageReport(
        pool=directory(FILES), total=MiB(space), free=MiB(space), usable=True
    )  # fmt: skip
    return NodeFacts(
        name=NodeName("-"), version="1", boot_id="b", clock=0.0, memory_total=MiB(8192),
        memory_free=MiB(memory), memory_dom0=MiB(512), cpus=8, cpu_sockets=1, cpu_nodes=1,
        storage=(report,),
    )  # fmt: skip


ROOMY = dict.fromkeys(NAMES, facts())
LIVE = {NodeId(name): each for name, each in ROOMY.items()}


def test_a_mirrored_instance_is_given_two_nodes_and_both_are_promised() -> None:
    cluster, seen = cluster_of(configured(), ROOMY | {"beta": facts(space=100)})
    chosen = asyncio.run(place_new(cluster, ["hail"], planned()))
    assert {node.name for node in chosen.nodes} == {"alpha", "gamma"}
    assert seen.promised == [[node.uuid for node in chosen.nodes]]
    assert f"via iallocator hail: {chosen.nodes[0]}, {chosen.nodes[1]}" in seen.said[0]


def test_the_next_allocator_is_asked_when_one_finds_nothing_or_is_not_there() -> None:
    cluster, seen = cluster_of(configured(), ROOMY)
    assert asyncio.run(place_new(cluster, ["nobody", "hail"], planned())).allocator == "hail"
    assert seen.said[0].startswith("There is no allocator “nobody”")
    assert seen.said[0].endswith(" The next allocator is asked.")
    cluster, seen = cluster_of(configured(), dict.fromkeys(NAMES, facts(space=100)))
    with pytest.raises(NotFound, match="nobody"):
        asyncio.run(place_new(cluster, ["hail", "nobody"], planned()))
    assert seen.said[0].startswith("Can't compute nodes using iallocator 'hail': No two nodes can")
    assert not seen.promised


def test_a_program_is_told_the_group_and_has_to_keep_to_it(tmp_path: Path) -> None:
    program = tmp_path / "hail"
    program.write_text("")
    program.chmod(0o755)
    group = GroupId("group")
    cluster, seen = cluster_of(configured(), ROOMY, ["gamma", "beta"], tmp_path)
    asyncio.run(place_new(cluster, ["hail"], planned()._replace(group=group)))
    assert seen.asked[0]["group_name"] == "default"
    cluster, _ = cluster_of(configured(), ROOMY, ["gamma", "beta"], tmp_path)
    with pytest.raises(AllocatorFailed, match="gamma was chosen, and is not in the group"):
        asyncio.run(place_new(cluster, ["hail"], planned()._replace(group=GroupId("other"))))


def test_a_program_that_leaves_an_instance_where_it_is_has_no_answer(tmp_path: Path) -> None:
    program = tmp_path / "hail"
    program.write_text("")
    program.chmod(0o755)
    there = planned("web1", ALPHA, BETA)
    answer = [[], [["web1", "it likes it there"]], []]
    cluster, seen = cluster_of(configured(there), ROOMY, answer, tmp_path)
    with pytest.raises(NoCapacity, match="'hail': web1: it likes it there") as caught:
        asyncio.run(plan_moves(cluster, ["hail"], OffNodes(("web1",), EvacuationMode.ALL)))
    assert caught.value.detail == {"failed": ["web1"]}
    assert not seen.promised


def test_a_program_is_asked_for_two_nodes_and_has_to_name_two(tmp_path: Path) -> None:
    program = tmp_path / "hail"
    program.write_text("")
    program.chmod(0o755)
    cluster, seen = cluster_of(configured(), ROOMY, ["gamma", "beta"], tmp_path)
    chosen = asyncio.run(place_new(cluster, ["hail"], planned()))
    assert [node.name for node in chosen.nodes] == ["gamma", "beta"]
    assert seen.asked[0]["required_nodes"] == 2
    assert seen.promised == [["gamma", "beta"]]
    for answer in (["gamma"], ["gamma", "gamma"], ["gamma", "beta", "alpha"]):
        cluster, seen = cluster_of(configured(), ROOMY, answer, tmp_path)
        with pytest.raises(AllocatorFailed):
            asyncio.run(place_new(cluster, ["hail"], planned()))
        assert not seen.promised


def test_many_mirrored_instances_are_given_two_nodes_each() -> None:
    cluster, seen = cluster_of(configured(), ROOMY)
    wanted = [planned(f"web{number}", memory=3000) for number in range(3)]
    chosen = asyncio.run(place_many(cluster, ["hail"], wanted))
    assert all(len(set(nodes)) == 2 for nodes in chosen.values())
    assert seen.promised == [list(nodes) for nodes in chosen.values()]
    assert len(chosen) == 2  # their memory is kept free on the third node


def test_a_promise_takes_space_on_both_nodes_and_memory_on_the_first() -> None:
    look = Look(configured(), LIVE)
    promise = Promise(InstanceId("web1"), ALPHA.uuid, MiB(512), planned("web1", ALPHA, BETA))
    after = Look(look.config, look.live, (promise,))
    space = [after.free_space(node, directory(FILES)) for node in NODES.values()]
    assert space == [100_000 - 1024, 100_000 - 1024, 100_000]
    memory = [after.free_memory(node, facts()) for node in NODES.values()]
    assert memory == [4096 - 512, 4096, 4096]
    (shown,) = after.snapshot.instances
    assert (shown.primary, shown.secondary, shown.reserved_memory) == (0, 1, 512)


def test_what_was_chosen_is_checked_on_both_nodes() -> None:
    new = planned()
    cluster, seen = cluster_of(configured(), ROOMY | {"beta": facts(space=1000)})
    with pytest.raises(NoCapacity, match="beta has 1000 MiB left"):
        asyncio.run(check_still_fits(cluster, new, [ALPHA, BETA], built_in=False))
    asyncio.run(check_still_fits(cluster, new, [ALPHA, GAMMA], built_in=True))
    assert seen.promised == [["alpha", "gamma"]]


def test_that_nodes_would_do_the_other_way_round_is_not_enough() -> None:
    """gamma could keep a copy, and has too few processors for the instance itself."""
    config = configured()
    live = ROOMY | {"gamma": replace(facts(), cpus=1)}
    config = config.apply([Put(replace(config.cluster, ipolicy=replace(
        config.cluster.ipolicy, vcpu_ratio=1.0
    )))])  # fmt: skip
    one = planned()
    new = PlannedInstance(replace(one.instance, beparams={"vcpus": 2}), one.disks)
    cluster, _ = cluster_of(config, live)
    asyncio.run(check_still_fits(cluster, new, [ALPHA, GAMMA], built_in=True))
    with pytest.raises(NoCapacity, match="no longer be on gamma with alpha as its secondary"):
        asyncio.run(check_still_fits(cluster, new, [GAMMA, ALPHA], built_in=True))


def test_another_secondary_node_is_chosen_and_promised() -> None:
    there = planned("web1", ALPHA, BETA)
    cluster, seen = cluster_of(configured(there), ROOMY)
    chosen = asyncio.run(place_elsewhere(cluster, ["hail"], there.instance))
    assert [node.name for node in chosen.nodes] == ["gamma"]
    assert seen.promised == [["alpha", "gamma"]]
    (after,) = Look(cluster.config, {}, cluster.placing.promises.standing()).snapshot.instances
    assert (after.primary, after.secondary) == (0, 2)


def test_a_program_is_asked_for_another_secondary_node_instead_of_the_present(
    tmp_path: Path,
) -> None:
    program = tmp_path / "hail"
    program.write_text("")
    program.chmod(0o755)
    there = planned("web1", ALPHA, BETA)
    cluster, seen = cluster_of(configured(there), ROOMY, ["gamma"], tmp_path)
    chosen = asyncio.run(place_elsewhere(cluster, ["hail"], there.instance))
    assert [node.name for node in chosen.nodes] == ["gamma"]
    assert (seen.asked[0]["type"], seen.asked[0]["relocate_from"]) == ("relocate", ["beta"])
    assert seen.asked[0]["required_nodes"] == 1


def test_a_node_without_space_is_not_chosen_as_secondary() -> None:
    there = planned("web1", ALPHA, BETA)
    cluster, seen = cluster_of(configured(there), ROOMY | {"gamma": facts(space=1023)})
    with pytest.raises(NoCapacity) as caught:
        asyncio.run(place_elsewhere(cluster, ["hail"], there.instance))
    assert caught.value.message == (
        "Can't compute nodes using iallocator 'hail': No other node of group default can be the "
        "secondary one of web1: gamma comes nearest, with 1023 MiB left in the directory "
        "/srv/files where 1024 are needed."
    )
    with pytest.raises(NoCapacity, match="gamma has 1023 MiB left"):
        promise = promise_of_secondary(there.instance, there.disks, GAMMA)
        asyncio.run(take_space(cluster, promise, [GAMMA]))
    assert not seen.promised


@pytest.mark.parametrize("evacuates", [False, True])
def test_nobody_is_refused_a_node_for_a_report_that_is_a_second_old(evacuates: bool) -> None:
    there = planned("web1", ALPHA, BETA)
    cluster, seen = cluster_of(configured(there), {})

    async def choose() -> None:
        seen.live = ROOMY | {"gamma": facts(space=1023)}
        await look_for(cluster)
        seen.live = ROOMY
        if evacuates:
            question = OffNodes(("web1",), EvacuationMode.SECONDARY)
            await plan_moves(cluster, ["hail"], question)
        else:
            await place_elsewhere(cluster, ["hail"], there.instance)

    asyncio.run(choose())
    assert seen.promised == [["alpha", "gamma"]]


def test_only_one_secondary_node_is_replaced() -> None:
    there = planned("web1", ALPHA)
    cluster, _ = cluster_of(configured(there), ROOMY)
    with pytest.raises(Conflict, match="has 0 secondary nodes"):
        asyncio.run(place_elsewhere(cluster, ["hail"], there.instance))


def test_a_new_secondary_counts_until_the_configuration_has_it() -> None:
    there = planned("web1", ALPHA, BETA)
    promise = promise_of_secondary(there.instance, there.disks, GAMMA)
    moved = [Put(replace(disk, nodes=(ALPHA.uuid, GAMMA.uuid))) for disk in there.disks]
    before = configured(there)
    for config, left in ((before, 100_000 - 1024), (before.apply(moved), 100_000)):
        look = Look(config, LIVE, (promise,))
        assert look.free_space(GAMMA, directory(FILES)) == left
        assert look.free_space(ALPHA, directory(FILES)) == 100_000
        assert [one.secondary for one in look.snapshot.instances] == [2]


def test_growth_counts_until_the_configuration_has_it() -> None:
    there = planned("web1", ALPHA, BETA)
    larger = tuple(replace(disk, size=MiB(1500)) for disk in there.disks)
    promise = Promise(
        there.instance.uuid, ALPHA.uuid, planned=PlannedInstance(there.instance, larger)
    )
    before = configured(there)
    for config, left in ((before, 100_000 - 476), (before.apply(map(Put, larger)), 100_000)):
        look = Look(config, LIVE, (promise,))
        assert look.free_space(BETA, directory(FILES)) == left


def test_moves_of_mirrored_instances_promise_what_they_take_of_both_nodes() -> None:
    config = configured(planned("web1", ALPHA, BETA), planned("web2", ALPHA, BETA))
    moves = Moves(
        (("web1", "default", ("beta", "gamma")), ("web2", "default", ("beta", "alpha"))), (), ()
    )
    promised = promises_of(config, moves)
    look = Look(config, LIVE, promised)
    assert [one.memory for one in promised] == [512, 512]
    assert [look.free_memory(node, facts()) for node in (BETA, GAMMA)] == [4096 - 1024, 4096]
    space = [look.free_space(node, directory(FILES)) for node in NODES.values()]
    assert space == [100_000, 100_000, 100_000 - 1024]
    shown = {one.name: (one.primary, one.secondary) for one in look.snapshot.instances}
    assert shown == {"web1": (1, 2), "web2": (0, 1)}


def test_a_new_secondary_only_takes_no_memory() -> None:
    config = configured(planned("web1", ALPHA, BETA))
    (promise,) = promises_of(config, Moves((("web1", "default", ("alpha", "gamma")),), (), ()))
    look = Look(config, LIVE, (promise,))
    assert promise.memory == 0
    assert look.free_space(GAMMA, directory(FILES)) == 100_000 - 1024


def test_named_nodes_are_as_many_as_the_template_needs() -> None:
    config = configured()
    assert named_place(config, DiskTemplate.DRBD, ["beta", "alpha"]) == Place(
        node=BETA.ref, others=(ALPHA.ref,)
    )
    assert named_place(config, DiskTemplate.FILE, ["beta"]) == Place(node=BETA.ref)
    with pytest.raises(InvalidRequest, match="drbd has two nodes, as in -n PRIMARY:SECONDARY"):
        named_place(config, DiskTemplate.DRBD, ["beta"])
    with pytest.raises(InvalidRequest, match="file has one node; given: beta, alpha"):
        named_place(config, DiskTemplate.FILE, ["beta", "alpha"])
    with pytest.raises(InvalidRequest, match="has to be another one than beta"):
        named_place(config, DiskTemplate.DRBD, ["beta", "beta"])
    with pytest.raises(NotFound, match="delta"):
        named_place(config, DiskTemplate.DRBD, ["beta", "delta"])


def test_the_job_that_makes_a_planned_second_copy_keeps_its_room() -> None:
    there = planned("web1", ALPHA, BETA)
    cluster, _ = cluster_of(configured(there), ROOMY)
    question = OffNodes(("web1",), EvacuationMode.SECONDARY)
    moves = asyncio.run(plan_moves(cluster, ["hail"], question))
    ((order,),) = plan_of(cluster, moves).jobs
    assert order.input["OP_ID"] == "OP_INSTANCE_REPLACE_DISKS"
    assert order.choice == Place(node=GAMMA.ref)
    load_all()
    (promise,) = read_operation(dict(order.input)).intends(cluster, order.choice)
    look = Look(cluster.config, LIVE, (promise,))
    assert look.free_space(GAMMA, directory(FILES)) == 100_000 - 1024


def test_a_promise_more_leads_to_the_same_as_looking_at_all_of_them() -> None:
    there = planned("web1", ALPHA, BETA)
    config = configured(there)
    promises = (
        promise_of_secondary(there.instance, there.disks, GAMMA),
        Promise(InstanceId("web2"), BETA.uuid, MiB(512), planned("web2", BETA, GAMMA)),
        Promise(InstanceId("web1"), ALPHA.uuid, MiB(512), there),
        Promise(InstanceId("web3"), GAMMA.uuid, MiB(512)),
    )
    step, whole = Look(config, LIVE), Look(config, LIVE, promises)
    for promise in promises:
        step = step.with_promise(promise)
    assert (step.promised, step.planned) == (whole.promised, whole.planned)
    for node in NODES.values():
        assert step.free_space(node, directory(FILES)) == whole.free_space(node, directory(FILES))
    assert [*step.snapshot.nodes] == [*whole.snapshot.nodes]
    assert [*step.snapshot.instances] == [*whole.snapshot.instances]
