"""A network: what addresses the nics in it may have, and how nodes plug them in."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any

from common.model.entity import Entity
from common.names import NetworkId, NetworkName

LARGEST_PREFIX, SMALLEST_PREFIX = 16, 30  # of an IPv4 network, as Ganeti has them
LARGEST_PREFIX_6, SMALLEST_PREFIX_6 = 64, 126  # of one that has IPv6 alone: what a link has

Address = IPv4Address | IPv6Address


class Network(Entity, kw_only=True):
    """Addresses that nics are given; which are taken, the nics themselves say.

    Which groups it is connected to, and with which parameters of nics, is said by the groups.

    Attributes:
        network: addresses of version 4: ``192.0.2.0/24``; empty: none.
        network6: likewise of version 6: ``2001:db8::/64``. One of the two is there.
        gateway: one of the addresses, which no nic is given; empty: none.
        gateway6: likewise.
        mac_prefix: of new nics in it, three octets; empty: the cluster's.
        reserved: addresses that no nic is given, in order.
    """

    uuid: NetworkId
    name: NetworkName
    network: str
    gateway: str = ""
    network6: str = ""
    gateway6: str = ""
    mac_prefix: str = ""
    reserved: tuple[str, ...] = ()


Connection = dict[str, Any]
"""How nics of a network are plugged in on the nodes of a group: mode, link, vlan."""


def told_of(network: Network) -> dict[str, str]:
    """Return what scripts are told of a network, by Ganeti's names; what it lacks is left out."""
    told = {
        "NETWORK_NAME": network.name,
        "NETWORK_UUID": network.uuid,
        "NETWORK_SUBNET": network.network,
        "NETWORK_GATEWAY": network.gateway,
        "NETWORK_SUBNET6": network.network6,
        "NETWORK_GATEWAY6": network.gateway6,
        "NETWORK_MAC_PREFIX": network.mac_prefix,
    }
    tags = {"NETWORK_TAGS": " ".join(sorted(network.tags))}
    return {name: value for name, value in told.items() if value} | tags


def ranges_of(network: Network) -> tuple[IPv4Network | IPv6Network, ...]:
    """Return its one or two ranges, that of version 4 first."""
    four = (IPv4Network(network.network),) if network.network else ()
    six = (IPv6Network(network.network6),) if network.network6 else ()
    return four + six
