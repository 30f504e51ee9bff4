"""What an allocator is asked, and its answer, can be seen; nothing is done about it."""

import dataclasses
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from common.errors import Conflict, GntError, InvalidRequest, NotFound
from common.model.template import DiskTemplate
from common.names import GroupName, NodeName
from coordinator.htools.hail import run as hail
from coordinator.operations.base import read_operation
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.group.add import AddGroup
from coordinator.operations.group.assign_nodes import AssignNodes
from coordinator.operations.placement.allocators import AllocatorFailed
from tests.sim.settings import create, mirrored
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster

NEW = {"mode": "allocate", "name": "new", "disk_template": "sharedfile", "disks": ["64", "1G"]}


async def tried(cluster: SimulatedCluster, **fields: Any) -> str:
    """Return what is told of an allocator."""
    asked = read_operation({"OP_ID": "OP_TEST_ALLOCATOR", **fields})
    job = await cluster.finished(await cluster.submit(asked))
    if job.ops[0].failure is not None:
        await cluster.run(asked)  # raises what went wrong
    return str(job.ops[0].result)


def answer_of_hail(message: str, folder: Path) -> Any:
    (folder / "message").write_text(message)
    said, wrong = io.StringIO(), io.StringIO()
    assert hail([str(folder / "message")], io.StringIO(), said, wrong) == 0, wrong.getvalue()
    return json.loads(said.getvalue())


@pytest.mark.parametrize(
    ("fields", "request_told"),
    [
        (NEW, {"type": "allocate", "name": "new", "required_nodes": 1}),
        (NEW | {"mode": "multi-allocate", "count": 2}, {"type": "multi-allocate"}),
        ({"mode": "relocate", "name": "web1"}, {"type": "relocate", "relocate_from": ["beta"]}),
        ({"mode": "node-evacuate", "name": "x", "instances": ["web2", "web1", "web2"]},
         {"type": "node-evacuate", "instances": ["web2", "web1"], "evac_mode": "all"}),
        ({"mode": "change-group", "name": "web1", "target_groups": ["attic"]},
         {"type": "change-group", "instances": ["web1"]}),
    ],
)  # fmt: skip
def test_the_message_is_what_programs_read_and_the_answer_is_that_to_it(
    fields: dict[str, Any], request_told: dict[str, Any], tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=4) as cluster:
            await cluster.run(AddGroup(group_name=GroupName("attic")))
            await cluster.run(
                AssignNodes(group_name=GroupName("attic"), nodes=(NodeName("delta"),), force=True)
            )
            for name in ("web1", "web2"):
                await cluster.run(create(name, "beta"))
            before = await cluster.snapshot()
            message = await tried(cluster, direction="in", **fields)
            answer = await tried(cluster, direction="out", iallocator="hail", **fields)
            dry = read_operation({"OP_ID": "OP_TEST_ALLOCATOR", "direction": "in", **fields})
            job = await cluster.finished(await cluster.submit(dry, dry_run=True))
            assert json.loads(job.ops[0].result).keys() == json.loads(message).keys()
            assert not before.differences(await cluster.snapshot())
            told = json.loads(message)
            assert sorted(told["nodes"]) == ["alpha", "beta", "delta", "gamma"]
            assert told["request"].items() >= request_told.items()
            assert json.loads(answer) == answer_of_hail(message, tmp_path)
            assert json.loads(answer)["success"] is True

    simulate(scenario())


def test_a_relocation_is_about_the_secondary_node_and_of_what_can_be_elsewhere() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(mirrored("web1", "gamma", "beta"))
            told = json.loads(await tried(cluster, name="web1"))
            assert told["request"]["relocate_from"] == ["beta"]
            await cluster.run(create("web2", "beta", template=DiskTemplate.FILE))
            with pytest.raises(Conflict, match="web2 has its disks on its node"):
                await tried(cluster, name="web2")

    simulate(scenario())


def test_a_new_instance_is_described_as_it_was_asked_for() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            fields = NEW | {"mode": "multi-allocate", "count": 2, "memory": 192, "vcpus": 3}
            nics = ["00:11:22:33:44:55/192.0.2.7/br7", {"mac": "auto", "ip": None, "bridge": None}]
            told = await tried(cluster, **fields, nics=nics, tags=["blue"], os="debian")
            first, second = json.loads(told)["request"]["instances"]
            assert (first["name"], second["name"]) == ("new0", "new1")
            assert (first["memory"], first["vcpus"], first["os"]) == (192, 3, "debian")
            assert [disk["size"] for disk in first["disks"]] == [64, 1024]
            assert first["tags"] == ["blue"]
            nic = first["nics"][0]
            assert (nic["mac"], nic["ip"], nic["bridge"]) == (
                "00:11:22:33:44:55",
                "192.0.2.7",
                "br7",
            )

    simulate(scenario())


@pytest.mark.parametrize(
    ("fields", "error", "complaint"),
    [
        (NEW | {"name": "web1"}, Conflict, "There is an instance web1 already"),
        (NEW | {"disks": ["lots"]}, InvalidRequest, "lots"),
        (NEW | {"nics": ["a/b/c/d"]}, InvalidRequest, "“a/b/c/d” is no nic"),
        (NEW | {"memory": -5}, GntError, "memory"),
        (NEW | {"vcpus": 0}, GntError, "vcpus"),
        (NEW | {"mode": "multi-allocate", "count": 0}, InvalidRequest, "--count is 0"),
        (NEW | {"mode": "multi-allocate", "count": 10**9}, InvalidRequest, "--count is"),
        (NEW | {"disk_template": "diskless"}, InvalidRequest, "diskless has no disks"),
        (NEW | {"group_name": "default"}, InvalidRequest, "group_name"),
        ({"name": "web1", "mode": "dance"}, InvalidRequest, "dance"),
        ({"name": "web7"}, NotFound, "web7"),
        ({"name": "web1", "mode": "change-group", "target_groups": ["attic"]}, NotFound, "attic"),
        ({"name": "web1", "direction": "out", "iallocator": "nope"}, NotFound, "nope"),
        ({"name": "web1", "direction": "out", "iallocator": "../x"}, InvalidRequest, "no name"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_by_name(
    fields: dict[str, Any], error: type[Exception], complaint: str
) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "beta"))
            with pytest.raises(error, match=complaint):
                await tried(cluster, **fields)

    simulate(scenario())


def _answering(answer: Callable[[str], str]) -> Any:
    async def run_program(program: Path, options: Sequence[str], message: str) -> str:
        assert (program.name, tuple(options)) == ("clever", ("--x=1",))
        return answer(message)

    return run_program


def test_a_program_gets_the_message_and_its_answer_is_told_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "clever").touch(0o755)
    heard: list[str] = []

    def nonsense(message: str) -> str:
        heard.append(message)
        return "I would not know.\n"

    def fails(message: str) -> str:
        raise AllocatorFailed("“clever” ended with 1.")

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "beta"))
            await cluster.run(ModifyCluster(default_iallocator_params={"x": "1"}))
            around = cluster.master.running._around

            def have(answer: Callable[[str], str]) -> None:
                around.placing = dataclasses.replace(
                    around.placing, run_program=_answering(answer), search_path=(tmp_path, None)
                )

            have(nonsense)
            asked = {"name": "web1", "iallocator": "clever"}
            assert await tried(cluster, direction="out", **asked) == "I would not know.\n"
            assert json.loads(heard[0])["request"]["name"] == "web1"
            have(fails)
            with pytest.raises(AllocatorFailed, match="ended with 1"):
                await tried(cluster, direction="out", **asked)
            have(lambda message: "x" * (5 << 20))
            with pytest.raises(Conflict, match="5,242,880 characters"):
                await tried(cluster, direction="out", **asked)

    simulate(scenario())
