"""The list of revoked keys, and how nodes come to have it: late, in part, or in vain."""

import asyncio
from functools import partial

import pytest
from msgspec.structs import replace

from common.errors import NodeFailure, NotFound
from common.names import Epoch, KeyId, Serial
from common.noderpc.roster import HeldKeys, HeldRoster
from common.revoked_keys import AT_FIRST, RevokedKeys
from common.rpc.envelope import answer
from common.rpc.server import Reply, refusal
from coordinator.operations.cluster.redist_conf import RedistConf
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.node.renew_key import RenewKey
from coordinator.operations.node.revoking import revoke
from coordinator.operations.node.roster import roster_of
from tests.sim.revoked_keys import (
    KEYS,
    everybody_knows,
    is_update,
    known_at,
    revoke_keys,
    revoking,
    told,
    watching,
)
from tests.sim.settings import BETA, GAMMA, create
from tests.sim.test_returning_nodes import findings
from tests.support.clock import simulate
from tests.support.cluster import simulated_cluster
from tests.support.faults import Mishap, Once, Trap
from tests.support.network import Fault, Trip


def test_one_more_key_is_told_as_one_and_not_with_all_others() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await revoke_keys(cluster, *KEYS[:-1])
            trips = watching(cluster)
            await revoke_keys(cluster, KEYS[-1])
            assert everybody_knows(cluster, *KEYS)
            assert all(told(trips, name) == [AT_FIRST] for name in cluster.names)
            assert max(len(trip.body) for trip in trips.seen) < 2000

    simulate(scenario())


def test_a_node_that_was_away_says_what_it_has_and_is_told_what_came_since() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await revoke_keys(cluster, *KEYS[:200])
            await cluster.lose_power("gamma")
            for key in KEYS[200:260]:
                await cluster.master.running.store.commit(partial(revoking, key))
            trips = watching(cluster)
            await cluster.machines["gamma"].boot()
            await cluster.settle(60)
            assert everybody_knows(cluster, *KEYS[:260])
            # The last time because its first answer showed that it was started anew.
            assert told(trips, "gamma")[-3:] == [AT_FIRST, 60, AT_FIRST]

    simulate(scenario())


def test_a_new_master_tells_those_who_know_all_of_it_nothing_but_the_end() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await revoke_keys(cluster, *KEYS)
            trips = watching(cluster)
            await cluster.take_over("beta")
            await cluster.settle()
            assert trips.seen
            assert max(len(trip.body) for trip in trips.seen) < 2000
            assert everybody_knows(cluster, *KEYS)

    simulate(scenario())


@pytest.mark.parametrize("mishap", list(Mishap))
@pytest.mark.parametrize("index", [0, 1])
def test_whatever_becomes_of_a_call_the_node_has_all_of_it_in_the_end(
    mishap: Mishap, index: int
) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await revoke_keys(cluster, *KEYS[:20])
            once = Once(
                lambda trip: is_update(trip) and trip.target == "gamma",
                index, mishap, cluster.restart_noded,
            )  # fmt: skip
            cluster.network.faults.append(once)
            await revoke_keys(cluster, *KEYS[20:90])  # more than everybody is told: two calls
            await cluster.settle(60)
            assert once.hit
            assert everybody_knows(cluster, *KEYS[:90])

    simulate(scenario())


def test_a_call_that_arrives_again_when_more_was_told_takes_nothing_back() -> None:
    class Again(Fault):
        def again_after_s(self, trip: Trip) -> float | None:
            return 7.0 if is_update(trip) else None

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            cluster.network.faults.append(Again())
            for begin in range(0, 90, 30):
                await revoke_keys(cluster, *KEYS[begin : begin + 30])
            await cluster.settle(60)
            assert everybody_knows(cluster, *KEYS[:90])

    simulate(scenario())


def test_a_deposed_master_with_a_shorter_list_takes_nothing_back() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await revoke_keys(cluster, *KEYS[:20])
            former = cluster.state
            cluster.suspend("alpha")
            await cluster.take_over("beta")
            await revoke_keys(cluster, *KEYS[20:40])
            gamma = cluster.machines["gamma"].noded
            assert gamma is not None
            late = replace(roster_of(former), revoked=())
            await gamma.candidates.update(late, former.config.revoked.after(0))
            assert known_at(cluster, "gamma") == KEYS[:40]
            cluster.resume("alpha")
            await cluster.settle(60)
            assert everybody_knows(cluster, *KEYS[:40])

    simulate(scenario())


class Overtaken(Fault):
    """Of the calls to a node the first arrives after the second, and the third fails."""

    def __init__(self, name: str) -> None:
        self.name, self.count, self.goes_on = name, 0, asyncio.Event()

    async def going(self, trip: Trip) -> Reply | None:
        if not is_update(trip) or trip.target != self.name:
            return None
        self.count += 1
        if self.count == 1:
            await self.goes_on.wait()
        elif self.count == 3:
            self.goes_on.set()
            return refusal(NodeFailure("The disk is full."))
        return None


def test_what_a_job_could_not_tell_is_told_by_the_publisher_that_it_overtook() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.settle()
            overtaken = Overtaken("gamma")
            cluster.network.faults.append(overtaken)
            await cluster.master.running.store.commit(
                lambda state: revoke(state.config, *KEYS[:50])
            )
            await cluster.settle(1)
            assert overtaken.count == 1
            await cluster.run(RedistConf())
            await cluster.settle(60)
            assert everybody_knows(cluster, *KEYS[:50])
            assert overtaken.count >= 4

    simulate(scenario())


class Liar(Fault):
    """A node that says of its list what it likes."""

    def __init__(self, name: str, said: HeldKeys) -> None:
        self.name, self.said, self.bytes = name, said, 0

    async def coming(self, trip: Trip, reply: Reply) -> Reply:
        if not is_update(trip) or trip.target != self.name:
            return reply
        self.bytes += len(trip.body)
        listed = {GAMMA: KeyId("")}
        lie = HeldRoster(
            epoch=Epoch(0), serial=Serial(0), candidates=listed, following={}, revoked=self.said
        )
        return Reply(200, answer(lie))


@pytest.mark.parametrize(
    "said",
    [
        HeldKeys(count=0, digest=RevokedKeys().digest),
        HeldKeys(count=150, digest=RevokedKeys(KEYS[:150]).digest),  # half of it
        HeldKeys(count=2**53, digest="f" * 64),
    ],
)
def test_a_node_that_lies_about_what_it_has_is_told_once_for_each_change(said: HeldKeys) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await revoke_keys(cluster, *KEYS[:-1])
            liar = Liar("gamma", said)
            cluster.network.faults.append(liar)
            await revoke_keys(cluster, KEYS[-1])
            await cluster.settle(600)
            assert liar.bytes < 2 * 70 * len(KEYS)
            assert everybody_knows(cluster, *KEYS)
            await cluster.run(create("web1", "gamma"))

    simulate(scenario())


class Older(Fault):
    """A node of a version that is told whole lists."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def going(self, trip: Trip) -> Reply | None:
        if trip.target != self.name or trip.call.name not in ("roster.update", "roster.held"):
            return None
        return refusal(NotFound(f"This node knows no call “{trip.call.name}”."))


def test_nodes_of_an_older_version_are_told_the_whole_list() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            cluster.network.faults.append(Older("gamma"))
            await revoke_keys(cluster, *KEYS[:50])
            await cluster.run(RenewKey(node_name=BETA))
            assert everybody_knows(cluster, *cluster.config.revoked.keys)
            assert len(cluster.config.revoked.keys) == 51
            assert not [each for each in await findings(cluster) if "revoked" in each]
            cluster.network.faults.clear()  # it is upgraded
            trips = watching(cluster)
            await revoke_keys(cluster, KEYS[50])
            assert everybody_knows(cluster, *cluster.config.revoked.keys)
            assert told(trips, "gamma") == [AT_FIRST]

    simulate(scenario())


@pytest.mark.parametrize("successor", ["alpha", "beta"])
def test_what_was_written_down_and_told_nobody_is_told_by_the_next_coordinator(
    successor: str,
) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await revoke_keys(cluster, *KEYS[:50])
            former = cluster.config.node(GAMMA).key
            trap = Trap(
                lambda trip: is_update(trip) and former in cluster.config.revoked.keys,
                0, cluster.master.die,
            )  # fmt: skip
            cluster.network.faults.append(trap)
            number = await cluster.submit(RenewKey(node_name=GAMMA))
            await trap.sprung.wait()
            cluster.network.faults.clear()
            await cluster.crash_master()
            if successor == "alpha":
                await cluster.start_master("alpha")
            else:
                await cluster.take_over("beta")
            await cluster.finished(number)
            await cluster.settle()
            assert everybody_knows(cluster, *KEYS[:50], former)

    simulate(scenario())


def test_wrong_clocks_change_nothing_about_who_knows_what() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await revoke_keys(cluster, *KEYS[:50])
            cluster.machines["alpha"].clock_is_off_s -= 3e8
            cluster.machines["gamma"].clock_is_off_s += 3e8
            await revoke_keys(cluster, *KEYS[50:60])
            assert everybody_knows(cluster, *KEYS[:60])

    simulate(scenario())


def test_a_node_that_comes_back_into_service_is_told_what_it_missed() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
            await revoke_keys(cluster, *KEYS[:50])
            assert known_at(cluster, "gamma") == ()
            await cluster.run(ModifyNode(node_name=GAMMA, offline=False))
            await cluster.settle()
            assert everybody_knows(cluster, *KEYS[:50])

    simulate(scenario())
