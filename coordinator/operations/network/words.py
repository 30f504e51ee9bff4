"""What networks are made of, checked as an operator gives it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from common.errors import Conflict, InvalidRequest
from common.model.address_pool import AddressPool, order_of
from common.model.network import (
    LARGEST_PREFIX,
    LARGEST_PREFIX_6,
    SMALLEST_PREFIX,
    SMALLEST_PREFIX_6,
    Address,
    Network,
    ranges_of,
)
from coordinator.state.config import Config

_PREFIX = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){2}")


def check_network(network: Network) -> None:
    """Refuse what is no network, or does not fit together.

    Raises:
        InvalidRequest: says what is wrong.
    """
    if not network.network and not network.network6:
        raise InvalidRequest(
            "A network has IPv4 addresses, IPv6 addresses, or both: give --network 192.0.2.0/24, "
            "or --network6 2001:db8::/64."
        )
    for text, router, version in (
        (network.network, network.gateway, _FOUR),
        (network.network6, network.gateway6, _SIX),
    ):
        _check_router(router, _read_range(text, version) if text else None, version)
    pool, version = ranges_of(network)[0], _FOUR if network.network else _SIX
    if not version.largest <= pool.prefixlen <= version.smallest:
        raise InvalidRequest(
            f"{pool} is too {'small' if pool.prefixlen > version.smallest else 'large'}: a "
            f"network{version.alone} has /{version.largest} to /{version.smallest}."
        )
    _check_reserved(network)
    if network.mac_prefix and not _PREFIX.fullmatch(network.mac_prefix):
        raise InvalidRequest(f"“{network.mac_prefix}” is no MAC prefix, as in aa:00:00.")
    if network.mac_prefix and int(network.mac_prefix[:2], 16) & 1:
        raise InvalidRequest(
            f"Addresses that begin with {network.mac_prefix} are of groups of machines, not of one."
        )


@dataclass(frozen=True)
class _Version:
    """A version of addresses: how its own are read and written, and how long prefixes may be."""

    number: int
    option: str
    alone: str  # what a network is called whose nics get such addresses
    network: str  # an example
    address: str
    largest: int
    smallest: int
    read_network: type[IPv4Network] | type[IPv6Network]
    read_address: type[IPv4Address] | type[IPv6Address]


_FOUR = _Version(
    4, "--network", "", "192.0.2.0/24", "192.0.2.7", LARGEST_PREFIX, SMALLEST_PREFIX,
    IPv4Network, IPv4Address,
)  # fmt: skip
_SIX = _Version(
    6, "--network6", " of IPv6 addresses alone", "2001:db8::/64", "2001:db8::1",
    LARGEST_PREFIX_6, SMALLEST_PREFIX_6, IPv6Network, IPv6Address,
)  # fmt: skip


def _read_range(text: str, version: _Version) -> IPv4Network | IPv6Network:
    try:
        addresses = version.read_network(text)
    except ValueError as error:
        raise InvalidRequest(
            f"“{text}” is no IPv{version.number} network, as in {version.network}."
        ) from error
    _refuse_link(addresses.network_address)
    return addresses


def _check_router(router: str, within: IPv4Network | IPv6Network | None, version: _Version) -> None:
    if not router:
        return
    number = version.number
    if within is None:
        raise InvalidRequest(
            f"A gateway of version {number} needs a network of version {number}: {version.option}."
        )
    try:
        address = version.read_address(router)
    except ValueError as error:
        raise InvalidRequest(
            f"“{router}” is no IPv{number} address, as in {version.address}."
        ) from error
    _refuse_link(address)
    if address not in within:
        raise InvalidRequest(f"{router} is not in {within}.")


def _check_reserved(network: Network) -> None:
    ranges = ranges_of(network)
    for text in network.reserved:
        address = read_address(text)
        if not any(address in each for each in ranges):
            raise InvalidRequest(f"{text} is not in {' and '.join(map(str, ranges))}.")


def read_address(text: str) -> Address:
    """Read an address of either version.

    Raises:
        InvalidRequest: it is none, or says on which link it is.
    """
    try:
        address = ip_address(text)
    except ValueError as error:
        raise InvalidRequest(
            f"“{text}” is no IP address, as in 192.0.2.7 or 2001:db8::7."
        ) from error
    _refuse_link(address)
    return address


def _refuse_link(address: Address) -> None:
    if isinstance(address, IPv6Address) and address.scope_id:
        raise InvalidRequest(f"“{address}” names a link: give the address alone.")


def in_order(addresses: Iterable[str]) -> tuple[str, ...]:
    """Return addresses, each once, in their order, those of version 4 first.

    Raises:
        InvalidRequest: one is none.
    """
    return tuple(map(str, sorted({read_address(text) for text in addresses}, key=order_of)))


def used_in(config: Config, network: Network) -> dict[Address, str]:
    """Return which addresses the nics of a network have, and whose they are."""
    owners = {nic: i.name for i in config.instances.values() for nic in i.nics}
    nics = (nic for nic in config.nics.values() if nic.network == network.uuid)
    return {ip_address(nic.ip): owners.get(nic.uuid, "an instance") for nic in nics if nic.ip}


def check_free(config: Config, network: Network, addresses: Iterable[str]) -> None:
    """Refuse to reserve what a nic has.

    Raises:
        Conflict: names the instance.
    """
    used = used_in(config, network)
    for address in addresses:
        if owner := used.get(read_address(address)):
            raise Conflict(
                f"{address} is the address of a nic of {owner}; it cannot be reserved.",
                network=network.name,
            )


def check_kept(config: Config, before: Network, after: Network) -> None:
    """Refuse another range of version 6 to which addresses do not belong that nics have of it.

    Raises:
        Conflict: names an instance.
    """
    if before.network6 == after.network6:
        return
    was, will = AddressPool(before), AddressPool(after)
    for address, owner in used_in(config, before).items():
        if was.is_inside(str(address)) and not will.is_inside(str(address)):
            raise Conflict(
                f"{address} of {owner} is in {before.network6}, and would not be in "
                f"{after.network6 or before.network} any more; give the nic another address first.",
                network=before.name,
            )


def machines_in(config: Config, network: Network) -> tuple[str, ...]:
    """Return the addresses of nodes that are in a network, in order."""
    pool = AddressPool(network)
    nodes = config.sorted_nodes()
    found = (ip for node in nodes for ip in (node.primary_ip, node.secondary_ip) if ip)
    return in_order(ip for ip in found if pool.is_inside(ip))
