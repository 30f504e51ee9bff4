"""Nodes that are switched by a program on the master, and asked past their systems."""

import pytest

from common.errors import Conflict, GntError, InvalidRequest
from common.model.job import Status
from common.names import NodeName
from common.noderpc.programs import OobCommand
from coordinator.operations.cluster.verify_group import VerifyGroup
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.node.power import PowerNodes
from coordinator.operations.node.restricted import RunRestricted
from tests.sim.settings import ALPHA, BETA, GAMMA
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster

SWITCH = {"oob_program": "/etc/gantry/out-of-band/switch"}
OFF, ON = OobCommand.POWER_OFF, OobCommand.POWER_ON


async def with_program(cluster: SimulatedCluster, *names: NodeName) -> None:
    for name in names:
        await cluster.run(ModifyNode(node_name=name, ndparams=SWITCH))


def asked(cluster: SimulatedCluster) -> list[tuple[str, str]]:
    programs = cluster.machines["alpha"].programs
    return [(str(command), node) for command, node in programs.asked]


def test_a_node_is_switched_off_when_it_is_offline_and_comes_back_when_it_is_on() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await with_program(cluster, GAMMA)
            off = PowerNodes(command=OFF, node_names=(GAMMA,))
            with pytest.raises(Conflict, match="gamma is not marked offline"):
                await cluster.run(off)
            await cluster.run(ModifyNode(node_name=GAMMA, offline=True))
            assert await cluster.run(off) == [[[0, "gamma"], [0, None]]]
            assert not cluster.config.node(GAMMA).powered
            with pytest.raises(Conflict, match="gnt-node power on gamma"):
                await cluster.run(ModifyNode(node_name=GAMMA, offline=False))
            await cluster.run(PowerNodes(command=ON, node_names=(GAMMA,)))
            assert cluster.config.node(GAMMA).powered
            await cluster.run(ModifyNode(node_name=GAMMA, offline=False))
            assert asked(cluster) == [("power-off", "gamma"), ("power-on", "gamma")]

    simulate(scenario())


def test_what_is_marked_offline_already_is_switched_off_by_who_marks_it_first() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await with_program(cluster, GAMMA)
            mark = ModifyNode(node_name=GAMMA, offline=True)
            await cluster.run(mark)
            before = cluster.config.node(GAMMA)
            job = await cluster.finished(await cluster.submit(mark))
            assert (job.status, job.ops[0].result) == (Status.SUCCESS, [])
            assert "gamma is as it was asked for already" in job.ops[0].log[0].message
            assert cluster.config.node(GAMMA) == before
            with pytest.raises(InvalidRequest, match="Nothing to change on node gamma"):
                await cluster.run(ModifyNode(node_name=GAMMA))
            await cluster.run(PowerNodes(command=OFF, node_names=(GAMMA,)))
            assert asked(cluster) == [("power-off", "gamma")]

    simulate(scenario())


def test_the_master_is_not_switched_off_by_itself() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await with_program(cluster, ALPHA, BETA)
            for command in (OFF, OobCommand.POWER_CYCLE):
                order = PowerNodes(command=command, node_names=(ALPHA,), ignore_status=True)
                with pytest.raises(Conflict, match=f"alpha is the master.*switch {command} alpha"):
                    await cluster.run(order)
            told = await cluster.run(PowerNodes(command=OFF, ignore_status=True))
            assert told == [[[0, "beta"], [0, None]]]
            assert asked(cluster) == [("power-off", "beta")]

    simulate(scenario())


def test_a_node_without_a_program_cannot_be_switched_and_tells_nothing() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            with pytest.raises(InvalidRequest, match="gamma: set the node parameter oob_program"):
                await cluster.run(PowerNodes(command=ON, node_names=(GAMMA,)))
            with pytest.raises(InvalidRequest, match="gamma, which has no oob_program"):
                await cluster.run(ModifyNode(node_name=GAMMA, powered=False))
            told = await cluster.run(PowerNodes(command=OobCommand.POWER_STATUS))
            assert told == [[[0, name], [3, None]] for name in ("alpha", "beta", "gamma")]

    simulate(scenario())


def test_what_a_program_answers_is_checked() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await with_program(cluster, GAMMA)
            answers = cluster.machines["alpha"].programs.answers

            async def told(command: OobCommand, said: str | None) -> tuple[object, str]:
                answers[command, GAMMA] = said
                number = await cluster.submit(PowerNodes(command=command, node_names=(GAMMA,)))
                job = await cluster.finished(number)
                ((_, cell),) = job.ops[0].result
                return cell, " ".join(entry.message for entry in job.ops[0].log)

            status, health = OobCommand.POWER_STATUS, OobCommand.HEALTH
            cell, log = await told(status, '{"powered": false}')
            assert cell == [0, {"powered": False}]
            assert "gamma is switched off, and was thought to be on" in log
            cell, log = await told(health, '[["disk 0", "OK"], ["fan", "CRITICAL"]]')
            assert cell == [0, [["disk 0", "OK"], ["fan", "CRITICAL"]]]
            assert "fan is CRITICAL" in log
            for command, bad in (
                (status, ""), (status, "{"), (status, '{"powered": 1}'), (status, "true"),
                (status, None), (health, "{}"), (health, '[["fan", "FINE"]]'), (health, "[[1, 2]]"),
                (health, '["fan"]'), (health, None), (status, "[" * 60_000),
            ):  # fmt: skip
                cell, log = await told(command, bad)
                assert cell == [2, None], bad
                assert "gamma" in log

    simulate(scenario())


def test_a_node_that_could_not_be_switched_fails_the_job_and_stays_as_it_was() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await with_program(cluster, GAMMA)
            cluster.machines["alpha"].programs.answers[OFF, GAMMA] = None
            order = PowerNodes(command=OFF, node_names=(GAMMA,), ignore_status=True)
            with pytest.raises(GntError, match="power-off gamma failed"):
                await cluster.run(order)
            assert cluster.config.node(GAMMA).powered

    simulate(scenario())


def test_a_restricted_command_tells_for_each_node_how_it_went() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            cluster.machines["beta"].programs.commands["tell"] = "well\n"
            order = RunRestricted(command="tell", nodes=(BETA, GAMMA))
            well, badly = await cluster.run(order)
            assert well == [True, "well\n"]
            assert badly[0] is False
            assert "does not run “tell”" in badly[1]
            assert await cluster.run(order, dry_run=True) == ["run tell on beta, gamma"]
            for bad in ("", "../sh", "a b", "/bin/sh", "-x", "a.b", "x" * 200):
                with pytest.raises(InvalidRequest):
                    await cluster.run(RunRestricted(command=bad, nodes=(BETA,)))
            with pytest.raises(InvalidRequest, match="on which nodes"):
                await cluster.run(RunRestricted(command="tell", nodes=()))

    simulate(scenario())


def test_verify_names_candidates_that_could_not_switch_nodes_as_masters() -> None:
    async def scenario() -> None:
        async with simulated_cluster(candidates=2) as cluster:
            await with_program(cluster, GAMMA)
            for name in ("beta", "gamma"):
                missing = {SWITCH["oob_program"]: "It is not there."}
                cluster.machines[name].programs.problems |= missing
            found = await cluster.run(VerifyGroup(group_name="default", findings=True))
            told = [(f["name"], f["message"]) for f in found if f["code"] == "ENODEOOBPATH"]
            assert told == [("beta", "It is not there.")]

    simulate(scenario())
