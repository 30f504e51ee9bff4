"""A node that is emptied for a while, and gets everything back."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from common.errors import Conflict, InvalidRequest
from common.model.job import Job, Status
from common.model.template import DiskTemplate
from common.names import JobId, NodeName
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.node.maintain import MaintainNode
from coordinator.operations.node.modify import ModifyNode
from tests.sim.settings import ALPHA, BETA, GAMMA, WEB1, create, mirrored
from tests.sim.stories.reserved import reserved
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster

AWAY, BACK = MaintainNode(node_name=GAMMA), MaintainNode(node_name=GAMMA, back=True)


def tell(story: Callable[[SimulatedCluster], Awaitable[None]], *, nodes: int = 4) -> None:
    """Tell a story of gamma, where web1 and web2 run, and web3 is down."""

    async def scenario() -> None:
        async with simulated_cluster(nodes=nodes, candidates=3) as cluster:
            await cluster.run(mirrored("web1", "gamma", "beta"))
            await cluster.run(create("web2", "gamma"))
            await cluster.run(mirrored("web3", "gamma", "beta", start=False))
            await story(cluster)

    simulate(scenario())


async def run_all(cluster: SimulatedCluster, operation: MaintainNode) -> list[Job]:
    """Run an operation, and all jobs that come of it, to the end of the last."""
    number = await cluster.submit(operation)
    return await follow_all(cluster, number)


async def follow_all(cluster: SimulatedCluster, first: JobId) -> list[Job]:
    numbers, jobs = [first], []
    for number in numbers:
        job = await cluster.finished(number)
        jobs.append(job)
        results: list[Any] = [op.result for op in job.ops if isinstance(op.result, dict)]
        numbers += [told for result in results for good, told in result["jobs"] if good]
    return jobs


async def guests(cluster: SimulatedCluster, machine: str) -> dict[str, str]:
    return {g.name: str(g.state) for g in await cluster.machines[machine].guest_list()}


def homes(cluster: SimulatedCluster) -> dict[str, str]:
    config = cluster.config
    return {i.name: config.nodes[i.primary_node].name for i in config.sorted_instances()}


def said(jobs: list[Job]) -> str:
    return "\n".join(entry.message for job in jobs for op in job.ops for entry in op.log)


def test_all_leave_a_node_and_come_back_when_the_work_is_done() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        jobs = await run_all(cluster, AWAY)
        assert "GNT" not in said(jobs)
        assert "Node gamma is empty" in said(jobs)
        assert GAMMA not in homes(cluster).values()
        assert await guests(cluster, "gamma") == {}
        node = cluster.config.node(GAMMA)
        assert (node.drained, node.master_candidate) == (True, False)
        assert len(cluster.config.candidates()) == 3  # delta instead of it
        await cluster.lose_power("gamma")
        await cluster.machines["gamma"].boot()
        await run_all(cluster, BACK)
        assert set(homes(cluster).values()) == {"gamma"}
        assert await guests(cluster, "gamma") == {"web1": "running", "web2": "running"}
        node = cluster.config.node(GAMMA)
        assert (node.drained, node.maintenance) == (False, None)

    tell(story)


def test_a_node_is_rebooted_by_itself_and_waited_for() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(mirrored("web4", "beta", "gamma"))
        await cluster.run(reserved(mirrored("web5", "beta", "gamma")))  # of which there is none
        jobs = await run_all(cluster, MaintainNode(node_name=GAMMA, reboot=True))
        assert all(job.status is Status.SUCCESS for job in jobs)
        assert "There is one copy only of web4 while gamma is down." in said(jobs)
        assert cluster.machines["gamma"].boots == 1
        assert await guests(cluster, "gamma") == {"web1": "running", "web2": "running"}
        assert cluster.config.node(GAMMA).master_candidate  # there was nobody else to be one

    tell(story, nodes=3)


def test_a_new_master_goes_on_with_it() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        number = await cluster.submit(MaintainNode(node_name=GAMMA, reboot=True))
        await cluster.settle(0.5)
        await cluster.lose_power("alpha")
        await cluster.take_over("beta")
        jobs = await follow_all(cluster, number)
        assert all(job.status is Status.SUCCESS for job in jobs), said(jobs)
        assert cluster.machines["gamma"].boots == 1
        assert set(homes(cluster).values()) == {"gamma"}
        assert cluster.config.node(GAMMA).maintenance is None

    tell(story)


def test_everything_comes_back_when_one_cannot_leave() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.lose_power("beta")  # the other copy of web1 is there
        await cluster.run(ModifyNode(node_name=BETA, offline=True, force=True))
        jobs = await run_all(cluster, AWAY)
        assert "web1, web3 did not leave gamma, so everything comes back" in said(jobs)
        results = [job.ops[0].result for job in jobs if isinstance(job.ops[0].result, dict)]
        assert ["web1", "web3"] in [result.get("stayed") for result in results]
        assert set(homes(cluster).values()) == {"gamma"}
        assert await guests(cluster, "gamma") == {"web1": "running", "web2": "running"}
        assert not cluster.config.node(GAMMA).drained

    tell(story)


def test_everything_comes_back_when_a_move_is_cancelled() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        number = await cluster.submit(AWAY)
        job = await cluster.finished(number)
        (_, first), *_ = job.ops[0].result["jobs"]
        await cluster.master.luxi("CancelJob", first)
        await follow_all(cluster, number)
        assert set(homes(cluster).values()) == {"gamma"}
        assert await guests(cluster, "gamma") == {"web1": "running", "web2": "running"}
        assert not cluster.config.node(GAMMA).drained

    tell(story)


def test_what_runs_is_stopped_and_started_elsewhere_if_that_is_wanted() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        jobs = await run_all(cluster, MaintainNode(node_name=GAMMA, failover=True))
        inputs = {op.input["OP_ID"] for job in jobs for op in job.ops}
        assert "OP_INSTANCE_FAILOVER" in inputs
        assert "OP_INSTANCE_MIGRATE" not in inputs
        assert GAMMA not in homes(cluster).values()

    tell(story)


def test_what_somebody_did_meanwhile_counts() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await run_all(cluster, AWAY)
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        await cluster.run(ModifyNode(node_name=GAMMA, drained=False))
        with pytest.raises(Conflict, match="gamma is under no maintenance"):
            await cluster.run(BACK)

    tell(story)


def test_what_makes_no_sense_is_refused_and_nothing_is_done() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(create("web4", "beta", template=DiskTemplate.FILE))
        before = await cluster.snapshot()

        async def refused(kind: type[Exception], words: str, name: str, **fields: Any) -> None:
            with pytest.raises(kind, match=words):
                await cluster.run(MaintainNode(node_name=NodeName(name), **fields))

        await refused(Conflict, "alpha is the master", ALPHA)
        await refused(Conflict, "under no maintenance", GAMMA, back=True)
        await refused(InvalidRequest, "--reboot before", GAMMA, back=True, reboot=True)
        await refused(Conflict, "web4 are on that node only", BETA)
        assert not before.differences(await cluster.snapshot())
        await run_all(cluster, AWAY)
        await refused(Conflict, "gamma is drained already", GAMMA)

    tell(story)
