"""A promotion that is undone: by then its node may be the master, which needs the state."""

from collections.abc import Iterator

from common.errors import NodeFailure
from common.model.job import Status
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.step import Step, record
from coordinator.state.rows import Update
from coordinator.state.state import State
from tests.sim.settings import BETA
from tests.support.clock import simulate
from tests.support.cluster import simulated_cluster
from tests.support.faults import Trap
from tests.support.story import changed_recipes, is_crossing


def test_who_is_the_master_when_its_promotion_is_undone_stays_a_candidate_with_its_state() -> None:
    async def scenario() -> None:
        async with simulated_cluster(candidates=2) as cluster:
            trap = Trap(is_crossing, 0, cluster.master.die)

            def refuse(_: State) -> list[Update]:
                if not trap.sprung.is_set():
                    cluster.network.faults.append(trap)
                raise NodeFailure("Injected into an edit.")

            def broken(steps: Iterator[Step]) -> Iterator[Step]:
                for step in steps:
                    is_last = step.title == "record the change of beta"
                    yield record(step.title, refuse) if is_last else step

            order = ModifyNode(node_name=BETA, master_candidate=False, auto_promote=True)
            with changed_recipes(order, broken):
                number = await cluster.submit(order)
                await trap.sprung.wait()
                cluster.network.faults.clear()
                await cluster.crash_master()
                await cluster.take_over("gamma")
                job = await cluster.finished(number)
            assert job.status is Status.ERROR, "nothing was undone"
            names = [node.name for node in cluster.config.candidates()]
            assert names == ["alpha", "beta", "gamma"]
            assert cluster.machines["gamma"].paths.replica.exists()
            await cluster.settle()
            cluster.check_replicas()

    simulate(scenario())
