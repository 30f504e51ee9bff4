"""The network `lan`, to which the only group of a simulated cluster is connected."""

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from common.names import NetworkName
from coordinator.operations.devices import NicRequest
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.network.add import AddNetwork
from coordinator.operations.network.connect import ConnectNetwork
from tests.sim.settings import create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster

LAN = NetworkName("lan")
FOUR = AddNetwork(network_name=LAN, network="198.51.100.0/24")
CONNECT = ConnectNetwork(network_name=LAN, group_name="default", network_link="br7")


def play(
    story: Callable[[SimulatedCluster], Awaitable[None]],
    network: AddNetwork = FOUR,
) -> None:
    """Tell a story of a network to which the only group is connected."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            for machine in cluster.machines.values():
                machine.network.bridges.add("br7")
            await cluster.run(network)
            await cluster.run(CONNECT)
            await story(cluster)

    simulate(scenario())


def in_lan(name: str = "web1", node: str | None = "gamma", **nic: Any) -> CreateInstance:
    """Order an instance whose nic is in the network, with what else is said of the nic."""
    return replace(create(name, node), nics=(NicRequest(network=LAN, **nic),))


def outside(ip: str, *, check: bool = True) -> CreateInstance:
    """Order web3 with an address that is in no network, though it may be one of its addresses."""
    return replace(create("web3", "gamma"), nics=(NicRequest(ip=ip),), conflicts_check=check)


def nics_of(cluster: SimulatedCluster, name: str = "web1") -> Any:
    """Return the nics of an instance as they are recorded."""
    return cluster.config.nics_of(cluster.config.instance(name))


async def asked(cluster: SimulatedCluster, *fields: str) -> list[Any]:
    """Return what a query tells of the network."""
    ((row,),) = ((await cluster.master.luxi("Query", "network", list(fields), None))["data"],)
    return [value for _, value in row]
