"""Questions to the allocator: what it would do, by live reports, with nothing done."""

from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import InvalidRequest, NotFound
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.test.delay import Delay
from tests.sim.settings import create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster

WISH: dict[str, Any] = {
    "type": "allocate", "disk_template": "sharedfile", "disks": [{"size": "64M"}],
    "beparams": {"memory": "64M", "vcpus": 1},
}  # fmt: skip


async def ask(cluster: SimulatedCluster, **question: Any) -> Any:
    return await cluster.master.luxi("AskAllocator", question)


def test_it_is_told_where_an_instance_would_go_and_why_and_nothing_happens() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            before = await cluster.snapshot()
            told = await ask(cluster, **WISH)
            assert len(told["nodes"]) == 1
            assert told["score_after"] == pytest.approx(sum(p["after"] for p in told["parts"]))
            others = {name for choice in told["runners_up"] for name in choice["nodes"]}
            assert others | set(told["nodes"]) | set(told["refused"]) == set(cluster.machines)
            assert await cluster.snapshot() == before

    simulate(scenario())


def test_a_node_that_does_not_answer_is_left_out_with_the_reason() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.lose_power("gamma")
            told = await ask(cluster, **WISH)
            assert told["refused"] == {"gamma": "is offline"}

    simulate(scenario())


@pytest.mark.parametrize(
    ("question", "error"),
    [
        ({"type": "allocate"}, InvalidRequest),
        ({**WISH, "group": "nowhere"}, NotFound),
        ({**WISH, "disk_template": "drbd"}, InvalidRequest),
        ({**WISH, "beparams": {"wings": 2}}, InvalidRequest),
        ({**WISH, "disks": [{"size": "huge"}]}, InvalidRequest),
        ({**WISH, "type": "capacity", "limit": -1}, InvalidRequest),
        ({"type": "balance", "max_operations": -1}, InvalidRequest),
        ({"type": "balance", "group": "nowhere"}, NotFound),
        ({"type": "prophecy"}, InvalidRequest),
    ],
)
def test_bad_questions_are_refused(question: dict[str, Any], error: type[Exception]) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(ModifyCluster(enabled_disk_templates=("sharedfile", "file")))
            with pytest.raises(error):
                await ask(cluster, **question)
            await cluster.run(Delay(duration=0.1))  # the master goes on

    simulate(scenario())


def test_as_many_as_are_told_to_fit_can_be_made_and_no_more() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            wish = {**WISH, "type": "capacity", "beparams": {"memory": "1900M"}}
            told = await ask(cluster, **wish)
            assert told["count"] == len(told["placements"]) > 0
            assert set(told["refused"]) == set(cluster.machines)
            assert (await ask(cluster, **wish, limit=1))["placements"] == told["placements"][:1]
            for number, nodes in enumerate(told["placements"]):
                order = replace(
                    create(f"web{number}"), beparams=wish["beparams"], iallocator="hail"
                )
                await cluster.run(order)
                instance = cluster.config.instance(f"web{number}")
                assert [cluster.config.nodes[instance.primary_node].name] == nodes
            assert (await ask(cluster, **wish))["count"] == 0

    simulate(scenario())


def test_moves_that_balance_are_jobs_that_can_be_submitted() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            for number in range(4):
                await cluster.run(create(f"web{number}", "alpha"))
            told = await ask(cluster, type="balance")
            assert len(told["moves"]) == len(told["jobs"]) > 0
            answers = await cluster.master.luxi("SubmitManyJobs", told["jobs"])
            for accepted, number in answers:
                assert accepted, number
                assert (await cluster.finished(number)).status == "success"
            for name, _, nodes in told["moves"]:
                instance = cluster.config.instance(name)
                assert cluster.config.nodes[instance.primary_node].name == nodes[0]
            assert (await ask(cluster, type="balance"))["moves"] == []

    simulate(scenario())
