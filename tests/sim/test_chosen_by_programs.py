"""Places that allocator programs choose: which of them is asked, and what they said is checked."""

import asyncio
import dataclasses
import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from common.errors import GntError, InvalidRequest, NoCapacity, NotFound
from common.names import InstanceName, NodeName
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.placement.allocators import AllocatorFailed
from coordinator.state.rows import Put
from tests.sim.many_at_once import OWN_MIB, check_not_overcommitted, made, order, submit
from tests.support.clock import simulate
from tests.support.cluster import outcome, simulated_cluster


def test_an_allocator_has_to_be_named_where_there_is_no_default() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=2) as cluster:
            changed = replace(cluster.config.cluster, default_iallocator="")
            await cluster.master.running.store.commit([Put(changed)])
            with pytest.raises(InvalidRequest, match="Name a node with -n, or an allocator"):
                await cluster.run(order("web1"))
            with pytest.raises(InvalidRequest, match="is no name of an allocator"):
                await cluster.run(order("web1", iallocator="../../bin/sh"))
            with pytest.raises(GntError, match="no allocator “nope”; the built-in one is “hail”"):
                await cluster.run(order("web1", iallocator="nope"))
            await cluster.run(order("web1", iallocator="hail"))

    simulate(scenario())


def test_default_allocators_are_tried_in_order() -> None:
    asked = []

    async def run_program(program: Path, options: Sequence[str], message: str) -> str:
        asked.append((program.name, *options))
        told = json.loads(message)
        assert told["request"]["type"] == "allocate"
        if program.name == "useless":
            return '{"success": false, "info": "no idea", "result": []}'
        return json.dumps({"success": True, "info": "here", "result": [sorted(told["nodes"])[1]]})

    async def scenario(folder: Path) -> None:
        for name in ("useless", "clever"):
            (folder / name).touch(0o755)
        async with simulated_cluster(nodes=3) as cluster:
            placing = cluster.master.running._around
            placing.placing = dataclasses.replace(
                placing.placing, run_program=run_program, search_path=(folder, None)
            )
            with pytest.raises(NotFound, match="There is no allocator “nope”"):
                await cluster.run(ModifyCluster(default_iallocators={"allocate": "nope"}))
            with pytest.raises(InvalidRequest, match="are not asked for “tea”, but for allocate"):
                await cluster.run(ModifyCluster(default_iallocators={"tea": "hail"}))
            await cluster.run(
                ModifyCluster(
                    default_iallocators={"allocate": "useless:clever:hail", "relocate": "none"},
                    default_iallocator_params={"x": "1", "flag": True},
                )
            )
            number = await cluster.submit(order("web1"))
            assert outcome(await cluster.finished(number)) == ["beta"]
            assert asked == [("useless", "--flag", "--x=1"), ("clever", "--flag", "--x=1")]
            said = [entry.message for entry in cluster.state.jobs[number].ops[0].log]
            assert said[0] == (
                "Can't compute nodes using iallocator 'useless': no idea The next allocator is "
                "asked."
            )
            assert "Selected nodes for instance web1 via iallocator clever: beta" in said
            with pytest.raises(InvalidRequest, match="no default allocator for “relocate”"):
                await cluster.run(MigrateInstance(instance_name=InstanceName("web1")))
            with pytest.raises(NoCapacity, match=r"^Can't compute nodes .* 'useless': no idea$"):
                await cluster.run(order("web2", iallocator="useless"))
            await cluster.run(ModifyCluster(default_iallocators={"allocate": "default"}))
            assert cluster.config.cluster.default_iallocators == {"relocate": ()}

    with tempfile.TemporaryDirectory() as folder:
        simulate(scenario(Path(folder)))


def test_programs_that_choose_at_the_same_time_do_not_choose_the_same() -> None:
    async def run_program(program: Path, options: Sequence[str], message: str) -> str:
        await asyncio.sleep(1.0)
        told = json.loads(message)
        nodes = told["nodes"]
        best = max(nodes, key=lambda name: (nodes[name]["free_memory"], name))
        if nodes[best]["free_memory"] < told["request"]["memory"]:
            return json.dumps({"success": False, "info": "all full", "result": []})
        return json.dumps({"success": True, "info": "", "result": [best]})

    async def scenario(folder: Path) -> None:
        (folder / "slow").touch(0o755)
        async with simulated_cluster(nodes=3) as cluster:
            for machine in cluster.machines.values():
                machine.shrink_memory(OWN_MIB + 1024)
            placing = cluster.master.running._around
            placing.placing = dataclasses.replace(
                placing.placing, run_program=run_program, search_path=(folder, None)
            )
            orders = [order(f"web{number}", iallocator="slow") for number in range(12)]
            inside = [order(f"new{number}") for number in range(3)]
            numbers = await submit(cluster, [*orders, *inside])
            done = await made(cluster, numbers)
            await check_not_overcommitted(cluster)
            homes = Counter(each.primary_node for each in cluster.config.instances.values())
            assert sum(homes.values()) == sum(done)
            assert set(homes.values()) == {4}

    with tempfile.TemporaryDirectory() as folder:
        simulate(scenario(Path(folder)))


def test_a_program_s_choice_is_checked() -> None:
    answers = iter((["nowhere"], ["gamma"], ["beta", "beta"], "beta", ["beta"]))

    async def run_program(program: Path, options: Sequence[str], message: str) -> str:
        return json.dumps({"success": True, "info": "", "result": next(answers)})

    async def scenario(folder: Path) -> None:
        (folder / "odd").touch(0o755)
        async with simulated_cluster(nodes=3) as cluster:
            placing = cluster.master.running._around
            placing.placing = dataclasses.replace(
                placing.placing, run_program=run_program, search_path=(folder, None)
            )
            await cluster.run(ModifyNode(node_name=NodeName("gamma"), drained=True, force=True))
            for complaint in (
                "it names “nowhere”, which is no node",
                "it names gamma, which takes no instances",
                r"it names 2 node\(s\) where 1 are needed",
                "Cannot read its answer: result is a list",
            ):
                with pytest.raises(AllocatorFailed, match=complaint):
                    await cluster.run(order("web1", iallocator="odd"))
            assert await cluster.run(order("web1", iallocator="odd")) == ["beta"]

    with tempfile.TemporaryDirectory() as folder:
        simulate(scenario(Path(folder)))
