"""Operations with which operators try the cluster: they do what they say, and nothing else."""

import pytest

from common.errors import Conflict, InvalidRequest, NotFound, Unreachable
from common.names import NodeName
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.test.delay import Delay
from coordinator.operations.test.os_parameters import TryOsParameters
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster

LOCKS = ["name", "mode"]


async def locked_nodes(cluster: SimulatedCluster, order: Delay) -> set[str]:
    """Return the nodes that are locked by themselves while a delay of thirty seconds goes on."""
    number = await cluster.submit(order)
    await cluster.settle(5.0)
    told = await cluster.master.luxi("Query", "lock", LOCKS)
    await cluster.master.luxi("CancelJob", number)
    await cluster.finished(number)
    rows = [[value for _, value in row] for row in told["data"]]
    return {name.partition("/")[2] for name, mode in rows if mode == "exclusive"}


def test_a_delay_locks_the_master_and_what_is_named_unless_told_otherwise() -> None:
    def delay(*nodes: str, on_master: bool = True, no_locks: bool = False) -> Delay:
        return Delay(duration=30.0, on_nodes=nodes, on_master=on_master, no_locks=no_locks)

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            assert await locked_nodes(cluster, delay()) == {"alpha"}
            assert await locked_nodes(cluster, delay("alpha", "gamma")) == {"alpha", "gamma"}
            assert await locked_nodes(cluster, delay("gamma", on_master=False)) == {"gamma"}
            assert await locked_nodes(cluster, delay(on_master=False)) == set()
            assert await locked_nodes(cluster, delay("gamma", no_locks=True)) == set()
            assert await locked_nodes(cluster, Delay(duration=30.0)) == set()

    simulate(scenario())


def test_a_delay_names_nodes_that_do_not_answer_are_offline_or_unknown() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            cluster.network.isolate("gamma")
            for locked in (True, False):
                with pytest.raises(Unreachable, match="gamma"):
                    await cluster.run(Delay(duration=1.0, on_nodes=("gamma",), no_locks=locked))
                with pytest.raises(NotFound, match="“delta”"):
                    await cluster.run(Delay(duration=1.0, on_nodes=("delta",), no_locks=locked))
            await cluster.run(ModifyNode(node_name=NodeName("gamma"), offline=True, force=True))
            with pytest.raises(Conflict, match="gamma is marked offline"):
                await cluster.run(Delay(duration=1.0, on_nodes=("gamma",)))

    simulate(scenario())


def test_secret_parameters_are_named_and_their_values_are_on_no_disk() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            given = {"root-password": "open sesame", "api_key": "xyzzy-4711"}
            number = await cluster.submit(TryOsParameters(osparams_secret=given))
            job = await cluster.finished(number)
            (said,) = [entry.message for entry in job.ops[0].log]
            assert said == "Secret parameters have come, and are not kept: api_key, root-password."
            files = [
                path.read_bytes()
                for machine in cluster.machines.values()
                for path in machine.paths.root.rglob("*")
                if path.is_file()
            ]
            assert any(b"root-password" in text for text in files), "the log is stored"
            assert not any(b"sesame" in text or b"xyzzy" in text for text in files)
            for wrong, match in (({}, "Give secret parameters"), ({"a\nb": "1"}, "no name of a")):
                with pytest.raises(InvalidRequest, match=match):
                    await cluster.run(TryOsParameters(osparams_secret=wrong))

    simulate(scenario())
