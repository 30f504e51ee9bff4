"""What verify finds of a running cluster, and how it is told to look."""

import pytest
from msgspec.structs import replace

from common.errors import InvalidRequest
from common.model.template import DiskTemplate
from common.noderpc.hooks import Ending
from coordinator.checks.report import CODES
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.cluster.verify import VerifyCluster
from coordinator.operations.cluster.verify_config import VerifyConfig
from coordinator.operations.cluster.verify_group import VerifyGroup
from tests.sim.settings import create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster


async def found(cluster: SimulatedCluster, **how: object) -> set[tuple[str, str]]:
    """Return the codes of what is amiss in the group, and what each is about."""
    told = await cluster.run(
        VerifyGroup(group_name="default", findings=True, **how)  # type: ignore[arg-type]
    )
    return {(each["code"], each["name"]) for each in told if each["severity"] != "NOTICE"}


def test_instances_outside_of_the_policy_are_named() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma"))
            assert await found(cluster) == set()
            await cluster.run(ModifyCluster(ipolicy={"disk-templates": ["plain"]}))
            assert await found(cluster) == {("EINSTANCEPOLICY", "web1")}

    simulate(scenario())


def test_a_node_without_memory_for_a_failover_is_named_unless_told_not_to_look() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            for name in ("web1", "web2"):
                web = create(name, "gamma", "beta", template=DiskTemplate.DRBD, start=False)
                await cluster.run(web)
            assert await found(cluster) == set()
            cluster.machines["beta"].shrink_memory(1024 + 200)
            assert await found(cluster) == {("ENODEN1", "beta")}
            assert await found(cluster, skip_checks=("nplusone_mem",)) == set()

    simulate(scenario())


def test_simulated_errors_are_of_all_codes_and_can_be_ignored() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            codes = {code for code, _ in await found(cluster, debug_simulate_errors=True)}
            told = await cluster.run(VerifyConfig(debug_simulate_errors=True, findings=True))
            assert codes | {each["code"] for each in told} == CODES
            assert not await cluster.run(VerifyConfig(debug_simulate_errors=True))
            ignored = tuple(code for code in CODES if code.startswith("ECLUSTER"))
            simulated = VerifyConfig(debug_simulate_errors=True, ignore_errors=ignored)
            assert await cluster.run(simulated)

    simulate(scenario())


def test_how_to_look_is_told_to_all_parts() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            with pytest.raises(InvalidRequest, match="can be left out are"):
                await cluster.run(VerifyCluster(skip_checks=("everything",)))
            await cluster.run(
                VerifyCluster(skip_checks=("nplusone_mem",), debug_simulate_errors=True)
            )
            await cluster.settle()
            jobs = sorted(cluster.state.jobs.items())[1:]  # but the refused one
            parts = [op.input for _, job in jobs for op in job.ops]
            groups = [each for each in parts if each["OP_ID"] == "OP_CLUSTER_VERIFY_GROUP"]
            assert [each["skip_checks"] for each in groups] == [["nplusone_mem"]]
            wanted = [each["debug_simulate_errors"] for each in parts]
            assert wanted == [True, True, True]

    simulate(scenario())


def test_scripts_of_the_operators_that_look_at_the_cluster_are_believed() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            look = VerifyGroup(group_name="default")
            scripts = {"cluster-verify-post.d": {"10-raid": Ending.FAILED, "20-ups": Ending.DONE}}
            cluster.machines["gamma"].hooks.scripts |= scripts
            assert not await cluster.run(look)
            assert await found(cluster) == {("ENODEHOOKS", "gamma")}
            assert await cluster.run(replace(look, ignore_errors=("ENODEHOOKS",)))
            number = await cluster.submit(replace(look, error_codes=True))
            log = [entry.message for entry in (await cluster.finished(number)).ops[0].log]
            assert any(
                "ENODEHOOKS: ERROR: node gamma: cluster-verify-post.d/10-raid on gamma" in line
                and "ended with status 1" in line
                for line in log
            )
            del scripts["cluster-verify-post.d"]["10-raid"]
            assert await cluster.run(look)

    simulate(scenario())
