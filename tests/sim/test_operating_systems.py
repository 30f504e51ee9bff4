"""Which operating systems a cluster has, and what becomes of scripts amid mishaps."""

import dataclasses

import pytest

from common.errors import InvalidRequest
from coordinator.operations.os.diagnose import FIELDS, DiagnoseOperatingSystems
from noded.operating_systems.fake import DEBIAN, NOOP
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster

LOOK = DiagnoseOperatingSystems(output_fields=FIELDS)


async def looked(cluster: SimulatedCluster) -> dict[str, dict[str, object]]:
    rows = await cluster.run(LOOK)
    return {row[0]: dict(zip(FIELDS, row, strict=True)) for row in rows}


def test_what_every_node_has_whole_can_be_installed() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            debian = (await looked(cluster))["debian"]
            assert debian["valid"]
            assert debian["variants"] == ["stable", "testing"]
            assert debian["api_versions"] == [15, 20]
            assert debian["node_status"]["beta"][0][:2] == ["/srv/os/debian", True]  # type: ignore[index]
            cluster.machines["gamma"].operating_systems.there = (NOOP,)
            debian = (await looked(cluster))["debian"]
            assert not debian["valid"]
            assert debian["variants"] == []
            assert debian["node_status"]["gamma"] == []  # type: ignore[index]
            legacy = DiagnoseOperatingSystems(output_fields=("name",))
            assert await cluster.run(legacy) == [["noop"]]

    simulate(story())


def test_only_what_is_the_same_on_all_nodes_counts() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            newer = dataclasses.replace(DEBIAN, variants=("testing", "sid"), api_versions=(20,))
            cluster.machines["beta"].operating_systems.there = (newer,)
            debian = (await looked(cluster))["debian"]
            assert debian["variants"] == ["testing"]
            assert debian["api_versions"] == [20]

    simulate(story())


def test_a_node_that_does_not_answer_is_named_and_left_out() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            await cluster.lose_power("gamma")
            job = await cluster.finished(await cluster.submit(LOOK))
            assert "gamma did not tell of its operating systems" in str(job.ops[0].log)
            assert job.ops[0].result[0][1]

    simulate(story())


def test_an_unknown_field_is_refused() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            with pytest.raises(InvalidRequest, match="have no field “colour”; they have name,"):
                await cluster.run(DiagnoseOperatingSystems(output_fields=("colour",)))

    simulate(story())
