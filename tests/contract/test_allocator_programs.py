"""Allocator programs, run for real: ours, Debian's hail, and some that go wrong."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from common.errors import NoCapacity
from common.model.allocation_policy import AllocationPolicy
from common.model.backing import FileBacking
from common.model.cluster import Cluster
from common.model.disk import Disk
from common.model.group import Group
from common.model.instance import AdminState, Instance
from common.model.node import Node
from common.model.policy import Bounds, PolicyLayer
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
from coordinator.allocator.relocation.relocate import relocate
from coordinator.allocator.request import Relocate
from coordinator.iallocator.answers import Options
from coordinator.iallocator.cluster import read_cluster
from coordinator.iallocator.fields import Fields
from coordinator.iallocator.jsontext import parse
from coordinator.iallocator.requests import EvacuationMode
from coordinator.iallocator.response import read_allocations, read_moves, read_nodes, read_response
from coordinator.operations.placement.allocators import AllocatorFailed, find_program
from coordinator.operations.placement.built_in import place_here
from coordinator.operations.placement.fit import promise_of
from coordinator.operations.placement.look import Look
from coordinator.operations.placement.message import (
    ask_for_move,
    ask_for_places,
    ask_to_place,
    message_of,
)
from coordinator.operations.placement.moves import OffNodes, solve_here
from coordinator.operations.placement.program import run_program
from coordinator.operations.placement.promises import PlannedInstance
from coordinator.state.rows import Put
from coordinator.state.state import State
from tests.support.disks import directory
from tests.unit.allocator.hail import HAIL, needs_hail

SHARED = "/srv/shared"
OUR_HAIL = Path(__file__).parents[2] / ".venv/bin/hail"


def random_look(rng: Random, *, params: dict[str, int | bool]) -> Look:
    """A cluster of up to twelve nodes in up to three groups, some of it out of order."""
    groups = [
        Group(
            uuid=GroupId(f"group-{number}"), name=GroupName(f"g{number}"),
            alloc_policy=rng.choice([*AllocationPolicy, AllocationPolicy.PREFERRED]),
            ipolicy=rng.choice((None, PolicyLayer(minmax=(Bounds(),), vcpu_ratio=2.0))),
        )
        for number in range(rng.randint(1, 3))
    ]  # fmt: skip
    nodes = [
        Node(
            uuid=NodeId(f"node-{number}"), name=NodeName(f"n{number:02}.x"), primary_ip="192.0.2.1",
            group=GroupId(rng.choice(groups).uuid), offline=rng.random() < 0.05,
            drained=rng.random() < 0.1, vm_capable=rng.random() > 0.05,
            tags=(f"rack:{rng.randint(1, 3)}",) if rng.random() < 0.5 else (),
        )
        for number in range(rng.randint(3, 12))
    ]  # fmt: skip
    planned = [_planned(rng, f"i{number:02}.x", rng.choice(nodes)) for number in range(30)]
    there = [one for one in planned if rng.random() < 0.8]
    coming = [one for one in planned if one not in there]
    cluster = Cluster(
        uuid=ClusterId("c"), name=ClusterName("test"), master=NodeId("node-0"),
        shared_file_storage_dir=SHARED,
        default_iallocator_params=params,
        tags=("htools:iextags:service", "htools:nlocation:rack") if rng.random() < 0.7 else (),
    )  # fmt: skip
    items: list[Stored] = [cluster, *groups, *nodes, *(one.instance for one in there)]
    items += [disk for one in there for disk in one.disks]
    config = State().apply(map(Put, items)).config
    live = {
        node.uuid: _facts(rng, node, [o for o in there if o.instance.primary_node == node.uuid])
        for node in nodes
        if not node.offline and rng.random() < 0.95
    }
    promised = tuple(
        promise_of(config, one, [config.nodes[one.instance.primary_node]]) for one in coming
    )
    return Look(config, live, promised)


def _planned(rng: Random, name: str, node: Node) -> PlannedInstance:
    sizes = [rng.choice((512, 1024, 4096)) for _ in range(rng.randint(0, 2))]
    disks = tuple(
        Disk(
            uuid=DiskId(f"{name}-{index}"),
            size=MiB(size),
            backing=FileBacking(path=SHARED, shared=True),
        )
        for index, size in enumerate(sizes)
    )
    memory = rng.choice((256, 512, 1024, 2048))
    instance = Instance(
        uuid=InstanceId(f"uuid-{name}"), name=InstanceName(name), primary_node=node.uuid,
        admin_state=rng.choice([*AdminState, AdminState.UP, AdminState.UP]), hypervisor="kvm",
        disk_template=DiskTemplate.SHAREDFILE if disks else DiskTemplate.DISKLESS,
        disks=tuple(disk.uuid for disk in disks),
        beparams={"maxmem": memory, "minmem": memory, "vcpus": rng.randint(1, 4)},
        tags=(f"service:{rng.randint(1, 8)}",) if rng.random() < 0.6 else (),
    )  # fmt: skip
    return PlannedInstance(instance, disks)


def _facts(rng: Random, node: Node, homes: list[PlannedInstance]) -> NodeFacts:
    running = {
        one.instance.uuid: MiB(one.instance.beparams["maxmem"])
        for one in homes
        if one.instance.admin_state is AdminState.UP and rng.random() < 0.9
    }
    own = MiB(rng.choice((700, 1024, 4096)))
    total = MiB(rng.choice((16384, 24576, 32768)))
    return NodeFacts(
        name=node.name, version="1", boot_id="b", clock=0.0, memory_total=total,
        memory_free=MiB(total - own - sum(running.values())), memory_dom0=own,
        cpus=rng.choice((8, 16)), cpu_sockets=1, cpu_nodes=1, guests=running,
        storage=(
            StorageReport(
                pool=directory(SHARED), total=MiB(900_000), free=MiB(500_000), usable=True
            ),
        ),
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_the_message_reads_back_as_the_snapshot(seed: int) -> None:
    """What a program reads is what our own engine decides on."""
    look = random_look(Random(seed), params={})
    message = Fields(parse(message_of(look, {})), "a message")
    read, taken = read_cluster(message, kvm_node_memory=0), look.snapshot
    assert read.tags == taken.tags
    assert read.groups == taken.groups
    assert list(read.instances) == list(taken.instances)
    for mine, other in zip(taken.nodes, read.nodes, strict=True):
        assert (mine.name, mine.group) == (other.name, other.group)
        assert mine.is_live == other.is_live
        assert mine.is_usable == other.is_usable
        if mine.is_live:
            assert mine == other


async def asked(program: Path, look: Look, request: dict[str, object]) -> list[str] | None:
    """The nodes that a program chooses; None if it finds none."""
    options = [
        f"--{key}={value}" for key, value in look.config.cluster.default_iallocator_params.items()
    ]
    told = read_response(await run_program(program, options, message_of(look, request)))
    return list(read_nodes(told, 1)) if told.success else None


async def check_same(program: Path, rng: Random, memory: int) -> None:
    look = random_look(rng, params={"static-kvm-node-memory": memory})
    while sum(node.is_usable for node in look.snapshot.nodes) < 2:
        # Of a lonely node ours does not ask that it could be emptied; hail does.
        look = random_look(rng, params={"static-kvm-node-memory": memory})
    new = _planned(rng, "new.x", next(iter(look.config.nodes.values())))
    question = ask_to_place(look, new)
    try:
        chosen = list(place_here(look, new).nodes)
    except NoCapacity:
        chosen = None
    assert chosen == await asked(program, look, question)
    movable = rng.choice(look.config.sorted_instances())
    disks = look.config.disks_of(movable)
    home = look.config.nodes[movable.primary_node].name
    try:
        order = Relocate(instance=InstanceName(movable.name))
        chosen = list(relocate(look.snapshot, order).nodes)
    except NoCapacity:
        chosen = None
    assert chosen == await asked(program, look, ask_for_move(movable, disks, home))


@needs_hail
@pytest.mark.parametrize("memory", [0, 4096])
def test_debians_hail_chooses_as_our_engine_does(memory: int) -> None:
    async def all_of_them() -> None:
        for seed in range(25):
            try:
                await check_same(Path(str(HAIL)), Random(f"{memory}{seed}"), memory)
            except AssertionError as error:
                error.add_note(f"seed {seed}")
                raise

    asyncio.run(all_of_them())


@needs_hail
def test_debians_hail_places_many_as_our_engine_does() -> None:
    """If all fit: where one does not, hail gives up, and ours goes on with the next."""

    async def compare(rng: Random) -> bool:
        look = random_look(rng, params={"static-kvm-node-memory": 0})
        if sum(node.is_usable for node in look.snapshot.nodes) < 2:
            return False
        node = next(iter(look.config.nodes.values()))
        news = [_planned(rng, f"new{number}.x", node) for number in range(4)]
        question = ask_for_places(ask_to_place(look, new) for new in news)
        told = await run_program(
            Path(str(HAIL)), ["--static-kvm-node-memory=0"], message_of(look, question)
        )
        answer = read_response(told)
        chosen = []
        for new in news:
            try:
                (name,) = place_here(look, new).nodes
            except NoCapacity:
                assert not answer.success
                return False
            chosen.append((str(new.instance.name), (str(name),)))
            promise = promise_of(look.config, new, [look.config.node(name)])
            look = replace(look, promised=(*look.promised, promise))
        assert read_allocations(answer) == dict(chosen)
        return True

    async def all_of_them() -> int:
        return sum([await compare(Random(seed)) for seed in range(25)])

    assert asyncio.run(all_of_them()) >= 10


@needs_hail
def test_debians_hail_evacuates_as_our_engine_does() -> None:
    async def compare(rng: Random) -> None:
        look = random_look(rng, params={"static-kvm-node-memory": 0})
        node = rng.choice(look.config.sorted_nodes())
        names = [instance.name for instance in look.config.instances_on(node.uuid)]
        question = OffNodes(tuple(names), EvacuationMode.ALL)
        told = await run_program(
            Path(str(HAIL)), ["--static-kvm-node-memory=0"], message_of(look, question.message())
        )
        answer = read_response(told)
        assert answer.success
        assert read_moves(answer) == solve_here(look, question, Options())

    async def all_of_them() -> None:
        for seed in range(25):
            await compare(Random(seed))

    asyncio.run(all_of_them())


@needs_hail
def test_debians_hail_can_take_the_place_of_the_built_in_one(tmp_path: Path) -> None:
    (tmp_path / "hail").symlink_to(str(HAIL))
    program = find_program("hail", (tmp_path, None))
    assert program is not None
    asyncio.run(check_same(program, Random(3), 0))


@pytest.mark.skipif(not OUR_HAIL.exists(), reason="OUR HAIL IS NOT INSTALLED in .venv")
def test_our_own_hail_runs_as_a_program_too() -> None:
    asyncio.run(check_same(OUR_HAIL, Random(7), 0))


def program(folder: Path, text: str) -> Path:
    path = folder / "allocator"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_program_gets_options_and_a_file_that_only_we_can_read(tmp_path: Path) -> None:
    script = program(
        tmp_path, f'echo "$1 $(stat -c %a "$2") $(cat "$2")"; echo "$2" > {tmp_path}/name'
    )
    told = asyncio.run(run_program(script, ["--x=1"], "hello"))
    assert told == "--x=1 600 hello\n"
    assert not Path((tmp_path / "name").read_text().strip()).exists()


def test_a_program_that_fails_is_quoted(tmp_path: Path) -> None:
    script = program(tmp_path, "echo 'no such thing' >&2; exit 3")
    with pytest.raises(AllocatorFailed, match=r"ended with status 3\. It said: no such thing"):
        asyncio.run(run_program(script, [], "{}"))


def test_a_program_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    with pytest.raises(AllocatorFailed, match=r"Cannot start .*nothing: No such file"):
        asyncio.run(run_program(tmp_path / "nothing", [], "{}"))


def test_a_program_that_prints_without_end_is_stopped(tmp_path: Path) -> None:
    script = program(tmp_path, "head -c 5000000 /dev/zero")
    with pytest.raises(AllocatorFailed, match="printed more than 4 MiB"):
        asyncio.run(run_program(script, [], "{}"))


def test_a_program_can_be_cancelled_at_any_moment(tmp_path: Path) -> None:
    """Also while it is being started, when its children may be there already."""
    script = program(tmp_path, "sleep 1000 & sleep 1000")

    async def cancelled(ticks: int) -> None:
        running = asyncio.ensure_future(run_program(script, [], "{}"))
        for _ in range(ticks):
            await asyncio.sleep(0.0005)
        running.cancel()
        async with asyncio.timeout(10):
            await asyncio.wait([running])
        assert running.cancelled()

    for ticks in range(30):
        asyncio.run(cancelled(ticks))


def test_a_program_is_killed_with_its_job(tmp_path: Path) -> None:
    pipe = tmp_path / "pid"
    os.mkfifo(pipe)
    script = program(tmp_path, f"echo $$ > {pipe}; sleep 1000")

    async def cancelled() -> int:
        running = asyncio.ensure_future(run_program(script, [], "{}"))
        pid = int(await asyncio.to_thread(pipe.read_text))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return pid

    pid = asyncio.run(cancelled())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
