"""A dead node is switched off before it is given up; a master that is cut off does so to nobody."""

import asyncio

import pytest

from common.errors import Conflict, GntError, InvalidRequest
from common.names import NodeName
from common.noderpc.programs import OobCommand
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.group.assign_nodes import AssignNodes
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.node.fence import LOOKS, FenceNode
from coordinator.operations.node.modify import ModifyNode
from coordinator.watcher.silent import SILENCE_S
from tests.sim.settings import ALPHA, BETA, DELTA, GAMMA, WEB1, mirrored
from tests.sim.stories.group import OTHER, another_group
from tests.sim.test_power import SWITCH, asked
from tests.sim.test_watcher import ROUND_S, at_rest, attempts, running, watch
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.faults import Trap
from tests.support.network import Trip

OFF, STATUS = OobCommand.POWER_OFF, OobCommand.POWER_STATUS
FENCE_GAMMA = FenceNode(node_name=GAMMA)


async def with_switches(cluster: SimulatedCluster, *, status: str = '{"powered": false}') -> None:
    """Have a program for all nodes, which tells this of each after it was switched off."""
    await cluster.run(ModifyCluster(ndparams=SWITCH))
    for machine in cluster.machines.values():
        machine.programs.take_power = cluster.lose_power
        machine.programs.answers |= {(STATUS, name): status for name in cluster.machines}


async def watch_after(cluster: SimulatedCluster, seconds: float) -> None:
    await asyncio.sleep(seconds)
    await watch(cluster)
    await at_rest(cluster)


def test_a_node_that_is_cut_off_is_switched_off_before_its_instance_starts_elsewhere() -> None:
    async def scenario() -> None:
        async with simulated_cluster(candidates=3) as cluster:
            await with_switches(cluster)
            await cluster.run(ModifyCluster(maintain_node_health=True))
            await cluster.run(mirrored())
            home = cluster.config.nodes[cluster.config.instance(WEB1).primary_node].name
            assert home == "gamma"
            cluster.network.isolate("gamma")  # where the guest runs on
            await watch_after(cluster, 0.0)  # from here on its silence is counted
            await watch_after(cluster, SILENCE_S - ROUND_S)
            assert not attempts(cluster)
            await watch_after(cluster, ROUND_S)
            assert asked(cluster) == [("power-off", "gamma"), ("power-status", "gamma")]
            gamma = cluster.config.node(GAMMA)
            assert (gamma.offline, gamma.powered, gamma.master_candidate) == (True, False, False)
            await cluster.run(FailOverInstance(instance_name=WEB1))
            assert (await running(cluster))["beta"] == {"web1": "running"}
            cluster.heal()
            await watch_after(cluster, ROUND_S)
            assert len(attempts(cluster)) == 1
            assert (await running(cluster))["beta"] == {"web1": "running"}

    simulate(scenario())


def test_a_node_whose_machine_runs_without_a_noded_that_answers_is_not_switched_off() -> None:
    async def scenario() -> None:
        async with simulated_cluster(candidates=3) as cluster:
            await with_switches(cluster)
            await cluster.machines["gamma"].kill_noded()
            with pytest.raises(Conflict, match=r"machine of gamma runs.*systemctl status gantry"):
                await cluster.run(FENCE_GAMMA)
            await cluster.machines["gamma"].start_noded()
            cluster.suspend("gamma")
            with pytest.raises(Conflict, match=r"machine of gamma runs.*did not answer"):
                await cluster.run(FENCE_GAMMA)
            assert asked(cluster) == []
            assert not cluster.config.node(GAMMA).offline
            cluster.resume("gamma")
            await cluster.lose_power("gamma")
            await cluster.run(FENCE_GAMMA)
            assert asked(cluster) == [("power-off", "gamma"), ("power-status", "gamma")]

    simulate(scenario())


def test_a_candidate_that_is_given_up_has_another_in_its_place() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=4, candidates=3) as cluster:
            await with_switches(cluster)
            await cluster.lose_power("gamma")
            await cluster.run(FENCE_GAMMA)
            await at_rest(cluster)
            assert [node.name for node in cluster.config.candidates()] == ["alpha", "beta", "delta"]

    simulate(scenario())


def test_no_node_is_switched_off_unless_it_is_allowed_nor_one_that_somebody_works_on() -> None:
    async def scenario() -> None:
        async with simulated_cluster(candidates=2) as cluster:
            await with_switches(cluster)
            cluster.network.isolate("gamma")
            await watch_after(cluster, 0.0)
            await watch_after(cluster, SILENCE_S + ROUND_S)
            await cluster.run(ModifyNode(node_name=GAMMA, drained=True))
            await cluster.run(ModifyCluster(maintain_node_health=True))
            await watch_after(cluster, ROUND_S)
            assert not attempts(cluster)
            await cluster.run(ModifyNode(node_name=GAMMA, drained=False))
            await watch_after(cluster, ROUND_S)
            assert len(attempts(cluster)) == 1

    simulate(scenario())


def test_a_node_is_not_switched_off_while_one_that_is_drained_is_silent_too() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=5, candidates=2) as cluster:
            await with_switches(cluster)
            await cluster.run(ModifyCluster(maintain_node_health=True))
            await cluster.run(ModifyNode(node_name=NodeName("delta"), drained=True))
            cluster.network.isolate("gamma")
            cluster.network.isolate("delta")
            await watch_after(cluster, 0.0)
            await watch_after(cluster, SILENCE_S + ROUND_S)
            assert not attempts(cluster), "what they have in common may have failed"
            await cluster.run(ModifyNode(node_name=NodeName("delta"), offline=True, force=True))
            await watch_after(cluster, ROUND_S)
            assert len(attempts(cluster)) == 1

    simulate(scenario())


def test_a_node_is_not_switched_off_while_one_of_another_group_is_silent_too() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=5, candidates=2) as cluster:
            await with_switches(cluster)
            await cluster.run(ModifyCluster(maintain_node_health=True))
            await another_group(cluster)
            await cluster.run(AssignNodes(group_name=OTHER, nodes=(DELTA,)))
            cluster.network.isolate("gamma")
            cluster.network.isolate("delta")
            await watch_after(cluster, 0.0)
            await watch_after(cluster, SILENCE_S + ROUND_S)
            assert not attempts(cluster), "groups may share what has failed"
            await cluster.run(ModifyNode(node_name=DELTA, offline=True, force=True))
            await watch_after(cluster, ROUND_S)
            assert len(attempts(cluster)) == 1

    simulate(scenario())


def test_a_master_that_is_cut_off_from_most_nodes_switches_nobody_off() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=4, candidates=1) as cluster:
            await with_switches(cluster)
            cluster.network.isolate("gamma")
            cluster.network.isolate("beta")
            with pytest.raises(Conflict, match="Only 2 of 4 nodes answer alpha"):
                await cluster.run(FENCE_GAMMA)
            # Those that are marked offline are no less nodes that could have another master.
            await cluster.run(ModifyNode(node_name=BETA, offline=True, force=True))
            with pytest.raises(Conflict, match="Only 2 of 4 nodes answer alpha"):
                await cluster.run(FENCE_GAMMA)
            assert asked(cluster) == []

    simulate(scenario())


def test_a_node_that_still_has_power_is_not_marked_offline() -> None:
    async def scenario() -> None:
        async with simulated_cluster(candidates=2) as cluster:
            await with_switches(cluster, status='{"powered": true}')
            await cluster.lose_power("gamma")
            with pytest.raises(GntError, match="gamma still has power"):
                await cluster.run(FENCE_GAMMA)
            assert len(asked(cluster)) == 1 + LOOKS
            for machine in cluster.machines.values():
                machine.programs.answers[OFF, GAMMA] = None
            with pytest.raises(GntError, match="power-off gamma failed"):
                await cluster.run(FENCE_GAMMA)
            for said in ("", "off", "{}", '{"powered": 0}', "[" * 9999):
                cluster.machines["alpha"].programs.answers |= {
                    (OFF, GAMMA): "", (STATUS, GAMMA): said,
                }  # fmt: skip
                with pytest.raises(GntError, match="did not answer power-status as it should"):
                    await cluster.run(FENCE_GAMMA)
            assert not cluster.config.node(GAMMA).offline

    simulate(scenario())


def test_who_answers_or_is_offline_or_the_master_or_cannot_be_switched_is_left_alone() -> None:
    async def scenario() -> None:
        async with simulated_cluster(candidates=2) as cluster:
            with pytest.raises(InvalidRequest, match=r"oob_program.*gnt-node modify --offline=yes"):
                await cluster.run(FENCE_GAMMA)
            await with_switches(cluster)
            with pytest.raises(Conflict, match="gamma answers, so it is not switched off"):
                await cluster.run(FENCE_GAMMA)
            with pytest.raises(Conflict, match="alpha is the master"):
                await cluster.run(FenceNode(node_name=ALPHA))
            with pytest.raises(GntError, match="delta"):
                await cluster.run(FenceNode(node_name=NodeName(DELTA)))
            await cluster.run(ModifyNode(node_name=GAMMA, offline=True))
            with pytest.raises(Conflict, match="gamma is marked offline already"):
                await cluster.run(FENCE_GAMMA)
            assert asked(cluster) == []

    simulate(scenario())


def is_vote_of_a_job(trip: Trip) -> bool:
    return trip.is_of_a_job and trip.call.name == "mastership.vote"


def test_a_node_that_is_back_is_not_switched_off_by_who_goes_on_with_the_job() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await with_switches(cluster)
            cluster.network.isolate("gamma")
            trap = Trap(is_vote_of_a_job, 2, cluster.master.die)  # two nodes answered the plan
            cluster.network.faults.append(trap)
            number = await cluster.submit(FENCE_GAMMA)
            await trap.sprung.wait()
            cluster.network.faults.clear()
            await cluster.crash_master()
            cluster.heal()
            await cluster.take_over("beta")
            job = await cluster.finished(number)
            assert job.ops[0].failure is not None
            assert "gamma answers, so it is not switched off" in job.ops[0].failure.message
            assert not cluster.config.node(GAMMA).offline
            assert not cluster.machines["beta"].programs.asked

    simulate(scenario())
