"""The small files that every node has of its cluster: what is sent of them, and when."""

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from common.noderpc.files import FileReport
from common.rpc.envelope import answer
from common.rpc.server import Reply
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.cluster.redist_conf import RedistConf
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.node.ssconf import ssconf_files
from coordinator.state.rows import Put
from coordinator.state.state import State
from tests.sim.settings import GAMMA
from tests.sim.test_watcher import watch
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.faults import Gate, Mishap, Once, Watching
from tests.support.network import Fault, Trip


def is_publication(trip: Trip) -> bool:
    return trip.call.name == "files.publish"


def sent(trips: Watching, name: str) -> list[set[str]]:
    """Return which files each of the calls to a node had."""
    return [{*json.loads(trip.body)["files"]} for trip in trips.seen if trip.target == name]


def watching(cluster: SimulatedCluster) -> Watching:
    trips = Watching(is_publication)
    cluster.network.faults.append(trips)
    return trips


def has_all(cluster: SimulatedCluster, *names: str) -> bool:
    """Tell whether nodes have the files as they should be."""
    files = ssconf_files(cluster.config)
    return all(
        (cluster.machines[name].paths.ssconf / file).read_text() == text
        for name in names
        for file, text in files.items()
    )


def test_a_change_sends_the_files_that_it_changes() -> None:
    async def scenario() -> None:
        async with simulated_cluster(candidates=2) as cluster:
            await cluster.settle()
            trips = watching(cluster)
            await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
            await cluster.settle()
            assert sent(trips, "beta") == [{"offline_nodes", "online_nodes"}]
            assert has_all(cluster, "alpha", "beta")
            await cluster.run(ModifyNode(node_name=GAMMA, offline=False))
            await cluster.settle()
            assert has_all(cluster, *cluster.names)

    simulate(scenario())


def test_a_node_that_was_started_anew_is_asked_and_sent_what_differs() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.settle()
            gamma = cluster.machines["gamma"]
            await gamma.kill_noded()
            (gamma.paths.ssconf / "node_list").write_text("nobody\n")
            await gamma.start_noded()
            trips = watching(cluster)
            await watch(cluster)
            await cluster.settle()
            assert sent(trips, "gamma") == [{"node_list"}]
            assert sent(trips, "alpha") == sent(trips, "beta") == []
            assert has_all(cluster, *cluster.names)

    simulate(scenario())


def test_a_new_master_asks_and_sends_what_differs() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.settle()
            (cluster.machines["gamma"].paths.ssconf / "node_list").write_text("nobody\n")
            trips = watching(cluster)
            await cluster.take_over("beta")
            await cluster.settle()
            assert sent(trips, "alpha") == [{"master_ip", "master_node"}]
            assert sent(trips, "gamma") == [{"master_ip", "master_node", "node_list"}]
            assert has_all(cluster, *cluster.names)

    simulate(scenario())


def test_links_that_are_wanted_are_named_with_every_change() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(ModifyCluster(ganeti_paths=True))
            await cluster.settle()
            trips = watching(cluster)
            await cluster.run(ModifyCluster(maintain_node_health=True))
            await cluster.settle()
            assert sent(trips, "beta") == [{"ganeti_paths", "maintain_node_health"}]
            assert (cluster.machines["beta"].paths.ganetis_sockets / "ganeti-master").is_symlink()

    simulate(scenario())


@pytest.mark.parametrize("mishap", list(Mishap))
def test_whatever_becomes_of_a_call_the_node_has_them_all_in_the_end(mishap: Mishap) -> None:
    async def scenario() -> None:
        async with simulated_cluster(candidates=2) as cluster:
            await cluster.settle()
            once = Once(
                lambda trip: is_publication(trip) and trip.target == "gamma",
                0, mishap, cluster.restart_noded,
            )  # fmt: skip
            cluster.network.faults.append(once)
            await cluster.run(ModifyCluster(maintain_node_health=True))
            await cluster.run(ModifyCluster(enabled_user_shutdown=True))
            await cluster.settle(60)
            assert once.hit
            assert has_all(cluster, *cluster.names)

    simulate(scenario())


class Liar(Fault):
    """A node that says of its files what it likes."""

    def __init__(self, told: list[FileReport]) -> None:
        self.told = told

    async def coming(self, trip: Trip, reply: Reply) -> Reply:
        if trip.call.name != "files.digests" or trip.target != "gamma":
            return reply
        return Reply(200, answer(self.told))


@pytest.mark.parametrize("count", [0, 1, 500])
def test_what_a_node_says_of_its_files_harms_nobody_else(count: int) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            cluster.network.faults.append(Liar([FileReport(digest="0" * 64)] * count))
            await cluster.take_over("beta")
            await cluster.settle()
            assert has_all(cluster, *cluster.names)

    simulate(scenario())


def tagged(state: State) -> list[Put]:
    """Change what is in one of the files, whatever is locked."""
    return [Put(replace(state.config.cluster, tags=("newer",)))]


async def by_job(cluster: SimulatedCluster) -> None:
    await cluster.run(RedistConf())


async def by_new_master(cluster: SimulatedCluster) -> None:
    await cluster.crash_master()
    await cluster.start_master("alpha")


@pytest.mark.parametrize(("order", "slow"), [(by_job, 0), (by_new_master, 0), (by_new_master, 1)])
def test_what_is_older_and_told_at_the_same_time_is_not_the_last_word(
    order: Callable[[SimulatedCluster], Awaitable[None]], slow: int
) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.settle()
            seen: list[Trip] = []

            def is_slow(trip: Trip) -> bool:
                if is_publication(trip) and trip.target == "alpha":
                    seen.append(trip)
                return trip in seen[slow : slow + 1]

            gate = Gate(is_slow)
            cluster.network.faults.append(gate)
            async with asyncio.TaskGroup() as group:
                group.create_task(ended(order(cluster)))
                await asyncio.sleep(3)
                await cluster.master.running.store.commit(tagged)
                await asyncio.sleep(3)
                gate.opened.set()
            await cluster.settle()
            assert gate.held
            assert has_all(cluster, *cluster.names)

    simulate(scenario())


async def ended(order: Awaitable[None]) -> None:
    await order
