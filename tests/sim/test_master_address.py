"""The address that goes with the mastership: on the master, and on no other node."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from common.errors import Conflict, GntError, InvalidRequest, NodeFailure
from common.names import ClusterName, NodeName
from coordinator.master.address import CERTAIN_S, LIFETIME_S, WAIT_S
from coordinator.operations.cluster.master_ip import ActivateMasterIp, DeactivateMasterIp
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.cluster.rename import RenameCluster
from coordinator.operations.cluster.verify_group import VerifyGroup
from coordinator.operations.node.modify import ModifyNode
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster

IP, OTHER = "192.0.2.100", "192.0.2.101"
GIVEN = ModifyCluster(master_ip=IP, master_netdev="eth0")
MOMENT_S = 0.5


async def holders(cluster: SimulatedCluster, ip: str = IP) -> list[str]:
    """Return the machines that have the address; noded need not run there."""
    return [n for n, machine in cluster.machines.items() if await machine.network.holds(ip)]


async def watch(cluster: SimulatedCluster, wanted: list[str], within_s: float) -> float:
    """Wait for these to be the holders; at no moment there are two. Return how long it took."""
    began_s = asyncio.get_running_loop().time()
    while (found := await holders(cluster)) != wanted:
        assert len(found) < 2
        took_s = asyncio.get_running_loop().time() - began_s
        assert took_s < within_s, f"{found} have it, not {wanted}"
        await asyncio.sleep(MOMENT_S)
    return asyncio.get_running_loop().time() - began_s


@asynccontextmanager
async def cluster_with_address() -> AsyncIterator[SimulatedCluster]:
    """Have a cluster whose master, alpha, has the address."""
    async with simulated_cluster() as cluster:
        await cluster.run(GIVEN)
        await watch(cluster, ["alpha"], 2)
        yield cluster


def test_the_master_has_its_address_for_as_long_as_it_is_configured() -> None:
    async def scenario() -> None:
        async with cluster_with_address() as cluster:
            await cluster.settle(5 * LIFETIME_S)
            assert await holders(cluster) == ["alpha"]
            await cluster.run(ModifyCluster(master_ip=OTHER))
            await cluster.settle(2)
            assert (await holders(cluster), await holders(cluster, OTHER)) == ([], ["alpha"])
            await cluster.run(ModifyCluster(master_ip="", master_netdev=""))
            await cluster.settle(2)
            assert await holders(cluster, OTHER) == []

    simulate(scenario())


def test_it_follows_the_mastership_at_once_where_all_nodes_can_be_told() -> None:
    async def scenario() -> None:
        async with cluster_with_address() as cluster:
            await cluster.take_over("beta")
            await watch(cluster, ["beta"], 5)
            assert await cluster.run(VerifyGroup(group_name="default"))

    simulate(scenario())


def test_a_master_that_is_cut_off_loses_it_before_the_next_one_has_it() -> None:
    async def scenario() -> None:
        async with cluster_with_address() as cluster:
            for other in ("beta", "gamma"):
                cluster.cut("alpha", other)
            await cluster.take_over("beta")
            await watch(cluster, [], CERTAIN_S + LIFETIME_S + 10)
            assert await watch(cluster, ["beta"], WAIT_S + 10) > 0
            cluster.heal()
            await cluster.settle(60)
            assert await holders(cluster) == ["beta"]

    simulate(scenario())


def test_a_master_whose_coordinator_is_dead_loses_it_whatever_its_node_does() -> None:
    async def scenario() -> None:
        async with cluster_with_address() as cluster:
            await cluster.crash_master()
            await cluster.machines["alpha"].kill_noded()
            await watch(cluster, [], LIFETIME_S + 1)

    simulate(scenario())


def test_a_master_that_cannot_be_certain_goes_without_and_has_it_again_later() -> None:
    async def scenario() -> None:
        async with cluster_with_address() as cluster:
            for other in ("beta", "gamma"):
                cluster.cut("alpha", other)
            await watch(cluster, [], CERTAIN_S + LIFETIME_S + 10)
            cluster.heal()
            await watch(cluster, ["alpha"], 30)

    simulate(scenario())


def test_a_dead_node_that_is_marked_offline_is_not_waited_for() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=4, candidates=3) as cluster:
            await cluster.run(GIVEN)
            await cluster.lose_power("delta")
            await cluster.run(ModifyNode(node_name=NodeName("delta"), offline=True))
            await cluster.take_over("beta")
            await watch(cluster, ["beta"], 5)

    simulate(scenario())


def test_it_is_deactivated_for_all_masters_until_it_is_activated() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            with pytest.raises(InvalidRequest, match="--master-ip=IP --master-netdev=DEVICE"):
                await cluster.run(DeactivateMasterIp())
            await cluster.run(GIVEN)
            await cluster.run(DeactivateMasterIp())
            await cluster.take_over("beta")
            await cluster.settle(10)
            assert await holders(cluster) == []
            await cluster.run(ActivateMasterIp())
            assert await holders(cluster) == ["beta"]

    simulate(scenario())


def test_an_address_that_its_node_cannot_have_is_told_by_verify() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(ModifyCluster(master_ip=IP, master_netdev="eth7"))
            with pytest.raises(NodeFailure, match=f"alpha does not have {IP} after"):
                await cluster.run(ActivateMasterIp())
            assert not await cluster.run(VerifyGroup(group_name="default"))
            cluster.machines["alpha"].network.devices.add("eth7")
            await cluster.run(ActivateMasterIp())

    simulate(scenario())


REFUSED: list[tuple[ModifyCluster | RenameCluster, str]] = [  # and how
    (ModifyCluster(master_ip=IP), "needs a network device"),
    (ModifyCluster(master_netdev="eth0"), "needs an address; .*--master-ip= --master-netdev="),
    (ModifyCluster(master_ip="", master_netdev=""), "Nothing to change"),
    (ModifyCluster(master_ip="192.0.2.2", master_netdev="eth0"), "own address of beta"),
    (ModifyCluster(master_ip="0.0.0.0", master_netdev="eth0"), "address of no single machine"),
    (ModifyCluster(master_ip="somewhere", master_netdev="eth0"), "no IP address"),
    (ModifyCluster(master_ip=IP, master_netdev="eth0/1"), "no name of a network device"),
    (ModifyCluster(master_ip=IP, master_netdev="x" * 16), "no name of a network device"),
    (ModifyCluster(master_ip=IP, master_netdev="eth0", master_netmask=33), "has 32 bits"),
    (ModifyCluster(master_ip=IP, master_netdev="eth0", master_netmask=0), "master_netmask"),
    (RenameCluster(name=ClusterName("greek.example.com")), "is called .* already"),
    (RenameCluster(name=ClusterName("no name")), "no name"),
    (RenameCluster(name=ClusterName("roman"), master_ip=IP), "needs a network device"),
]


def test_what_makes_no_sense_is_refused_and_changes_nothing() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            before = cluster.config
            for wrong, told in REFUSED:
                with pytest.raises((InvalidRequest, Conflict), match=told):
                    await cluster.run(wrong)
                assert cluster.config == before, wrong

    simulate(scenario())


def test_a_renamed_cluster_is_called_so_on_all_nodes_and_goes_on() -> None:
    async def scenario() -> None:
        async with cluster_with_address() as cluster:
            renamed = RenameCluster(name=ClusterName("roman.example.com"), master_ip=OTHER)
            assert await cluster.run(renamed) == "roman.example.com"
            await cluster.settle(5)
            for machine in cluster.machines.values():
                told = {
                    n: (machine.paths.ssconf / n).read_text() for n in ("cluster_name", "master_ip")
                }
                assert told == {"cluster_name": "roman.example.com\n", "master_ip": f"{OTHER}\n"}
            assert (await holders(cluster), await holders(cluster, OTHER)) == ([], ["alpha"])
            await cluster.take_over("beta")
            with pytest.raises(GntError):
                await cluster.run(renamed)

    simulate(scenario())
