"""What networks are made of, checked as an operator gives it."""

import re
from collections.abc import Iterable
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network

from common.errors import Conflict, InvalidRequest
from common.model.address_pool import AddressPool
from common.model.network import LARGEST_PREFIX, SMALLEST_PREFIX, Network
from coordinator.state.config import Config

_PREFIX = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){2}")


def check_network(network: Network) -> None:
    """Refuse what is no network, or does not fit together.

    Raises:
        InvalidRequest: says what is wrong.
    """
    addresses = read_range(network.network)
    if not LARGEST_PREFIX <= addresses.prefixlen <= SMALLEST_PREFIX:
        raise InvalidRequest(
            f"{network.network} is too {'small' if addresses.prefixlen > 30 else 'large'}: a "
            f"network has /{LARGEST_PREFIX} to /{SMALLEST_PREFIX}."
        )
    for address in filter(None, (network.gateway, *network.reserved)):
        if read_address(address) not in addresses:
            raise InvalidRequest(f"{address} is not in {network.network}.")
    if network.gateway6 and not network.network6:
        raise InvalidRequest("A gateway of version 6 needs a network of version 6: --network6.")
    if network.network6:
        inside = _read_range_6(network.network6)
        if network.gateway6 and _read_address_6(network.gateway6) not in inside:
            raise InvalidRequest(f"{network.gateway6} is not in {network.network6}.")
    if network.mac_prefix and not _PREFIX.fullmatch(network.mac_prefix):
        raise InvalidRequest(f"“{network.mac_prefix}” is no MAC prefix, as in aa:00:00.")
    if network.mac_prefix and int(network.mac_prefix[:2], 16) & 1:
        raise InvalidRequest(
            f"Addresses that begin with {network.mac_prefix} are of groups of machines, not of one."
        )


def read_range(text: str) -> IPv4Network:
    """Read an IPv4 network.

    Raises:
        InvalidRequest: it is none.
    """
    try:
        return IPv4Network(text)
    except ValueError as error:
        raise InvalidRequest(f"“{text}” is no IPv4 network, as in 192.0.2.0/24.") from error


def read_address(text: str) -> IPv4Address:
    """Read an IPv4 address.

    Raises:
        InvalidRequest: it is none.
    """
    try:
        return IPv4Address(text)
    except AddressValueError as error:
        raise InvalidRequest(f"“{text}” is no IPv4 address, as in 192.0.2.7.") from error


def _read_range_6(text: str) -> IPv6Network:
    try:
        return IPv6Network(text)
    except ValueError as error:
        raise InvalidRequest(f"“{text}” is no IPv6 network, as in 2001:db8::/64.") from error


def _read_address_6(text: str) -> IPv6Address:
    try:
        return IPv6Address(text)
    except AddressValueError as error:
        raise InvalidRequest(f"“{text}” is no IPv6 address, as in 2001:db8::1.") from error


def in_order(addresses: Iterable[str]) -> tuple[str, ...]:
    """Return IPv4 addresses, each once, in their order.

    Raises:
        InvalidRequest: one is none.
    """
    return tuple(map(str, sorted({read_address(text) for text in addresses})))


def used_in(config: Config, network: Network) -> dict[str, str]:
    """Return which addresses of a network its nics have, and whose they are."""
    owners = {nic: i.name for i in config.instances.values() for nic in i.nics}
    nics = (nic for nic in config.nics.values() if nic.network == network.uuid)
    return {nic.ip: owners.get(nic.uuid, "an instance") for nic in nics if nic.ip}


def check_free(config: Config, network: Network, addresses: Iterable[str]) -> None:
    """Refuse to reserve what a nic has.

    Raises:
        Conflict: names the instance.
    """
    used = used_in(config, network)
    for address in addresses:
        if address in used:
            raise Conflict(
                f"{address} is the address of a nic of {used[address]}; it cannot be reserved.",
                network=network.name,
            )


def machines_in(config: Config, network: Network) -> tuple[str, ...]:
    """Return the addresses of nodes that are in a network, in order."""
    pool = AddressPool(network)
    nodes = config.sorted_nodes()
    found = (ip for node in nodes for ip in (node.primary_ip, node.secondary_ip) if ip)
    return in_order(ip for ip in found if pool.is_inside(ip))
