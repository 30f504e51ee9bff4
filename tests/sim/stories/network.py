"""Operations on networks."""

from msgspec.structs import replace

from common.names import NetworkName
from coordinator.operations.devices import NicRequest
from coordinator.operations.network.add import AddNetwork
from coordinator.operations.network.connect import ConnectNetwork
from coordinator.operations.network.disconnect import DisconnectNetwork
from coordinator.operations.network.modify import ModifyNetwork
from coordinator.operations.network.remove import RemoveNetwork
from coordinator.operations.network.rename import RenameNetwork
from tests.sim.settings import create
from tests.support.cluster import SimulatedCluster
from tests.support.story import Story

LAN = NetworkName("lan")
ADD = AddNetwork(network_name=LAN, network="198.51.100.0/24")
SIX = AddNetwork(network_name=LAN, network6="2001:db8::/64", gateway6="2001:db8::1")
CONNECT = ConnectNetwork(network_name=LAN, group_name="default", network_link="br0")


async def lan(cluster: SimulatedCluster) -> None:
    await cluster.run(ADD)


async def connected(cluster: SimulatedCluster) -> None:
    await lan(cluster)
    await cluster.run(CONNECT)


async def connected_by_six(cluster: SimulatedCluster) -> None:
    await cluster.run(SIX)
    await cluster.run(CONNECT)


STORIES = {
    "make a network": Story(ADD),
    "connect a group to a network": Story(CONNECT, lan),
    "disconnect a group from a network": Story(
        DisconnectNetwork(network_name=LAN, group_name="default"), connected
    ),
    "change a network": Story(ModifyNetwork(network_name=LAN, gateway="198.51.100.1"), lan),
    "rename a network": Story(RenameNetwork(network_name=LAN, new_name=NetworkName("dmz")), lan),
    "remove a network": Story(RemoveNetwork(network_name=LAN), lan),
    "create in a network": Story(
        replace(create(node="gamma", start=False), nics=(NicRequest(network=LAN, ip="pool"),)),
        connected,
    ),
    "make a network of version 6": Story(SIX),
    "create in a network of version 6": Story(
        replace(create(node="gamma", start=False), nics=(NicRequest(network=LAN, ip="pool"),)),
        connected_by_six,
    ),
}
