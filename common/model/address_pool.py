"""Which addresses of a network are free."""

from collections.abc import Iterable, Iterator
from ipaddress import IPv6Address, ip_address

from common.errors import Conflict, InvalidRequest, NoCapacity
from common.model.network import Address, Network, ranges_of

TAKEN, FREE = "X", "."
MOST_MAPPED = 1 << 16  # addresses: as many as the largest network of version 4 has


class AddressPool:
    """The addresses of one network. Those of the nics in it are told by the caller.

    New nics get addresses of the *pool*, and it alone is counted: the range of version 4, or
    that of version 6 where there is no other. Which address is free is known of both.
    """

    def __init__(self, network: Network, used: Iterable[str] = ()) -> None:
        """Look at a network.

        Args:
            network: whose addresses these are.
            used: by nics; those outside of the network are none of ours.
        """
        self.network = network
        self._ranges = ranges_of(network)
        self._pool = self._ranges[0]
        kept = (*network.reserved, *filter(None, (network.gateway, network.gateway6)))
        self._reserved: set[Address] = {ip_address(text) for text in kept}
        for each in self._ranges:  # the first of version 6 is that of any router (RFC 4291, 2.6.1)
            self._reserved.add(each[0])
            if each.version == 4:
                self._reserved.add(each[-1])
        self._used = {found for text in used if (found := self._find(text)) is not None}

    def is_inside(self, address: str) -> bool:
        """Tell whether this is an address of the network."""
        return self._find(address) is not None

    @property
    def size(self) -> int:
        """How many addresses the pool has."""
        return self._pool.num_addresses

    @property
    def taken_count(self) -> int:
        """How many of the pool no new nic can have."""
        return len(self._taken())

    @property
    def map(self) -> str:
        """One letter for each address of the pool in order: ``X`` is taken, ``.`` is free.

        Empty for more than 65,536 addresses: a /64 of version 6 would be longer than any memory.
        """
        if self.size > MOST_MAPPED:
            return ""
        letters = [FREE] * self.size
        for address in self._taken():
            letters[int(address) - int(self._pool[0])] = TAKEN
        return "".join(letters)

    def reserved(self) -> Iterator[str]:
        """Yield the addresses that no nic is given, in order: also those that no machine has."""
        yield from map(str, sorted(self._reserved, key=order_of))

    def take_free(self) -> str:
        """Return the first address of the pool that is free, which is taken then.

        Raises:
            NoCapacity: there is none left.
        """
        for address in self._pool:
            if address not in self._reserved and address not in self._used:
                self._used.add(address)
                return str(address)
        raise NoCapacity(
            f"All addresses of the network {self.network.name} ({self._pool}) are taken.",
            network=self.network.name,
        )

    def take(self, address: str) -> None:
        """Take an address that somebody asks for.

        Raises:
            InvalidRequest: it is none of the network's.
            Conflict: it is taken, or reserved.
        """
        name, found = self.network.name, self._find(address)
        if found is None:
            raise InvalidRequest(
                f"{address} is not in the network {name}, which is "
                f"{' and '.join(map(str, self._ranges))}.",
                network=name,
            )
        if found in self._reserved:
            raise Conflict(f"{address} is reserved in the network {name}.", network=name)
        if found in self._used:
            raise Conflict(f"{address} is taken by a nic in the network {name}.", network=name)
        self._used.add(found)

    def release(self, address: str) -> None:
        """Take back what a nic has."""
        found = self._find(address)
        if found is not None:
            self._used.discard(found)

    def _taken(self) -> set[Address]:
        return {each for each in self._reserved | self._used if each in self._pool}

    def _find(self, text: str) -> Address | None:
        """Read an address of the network: however it is written, it is the same."""
        try:
            address = ip_address(text)
        except ValueError:
            return None
        if isinstance(address, IPv6Address) and address.scope_id:  # it would be another
            return None
        return address if any(address in each for each in self._ranges) else None


def order_of(address: Address) -> tuple[int, int]:
    """Return what addresses of both versions are sorted by."""
    return address.version, int(address)
