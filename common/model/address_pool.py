"""Which addresses of a network are free."""

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address

from common.errors import Conflict, InvalidRequest, NoCapacity
from common.model.network import Network, range_of

TAKEN, FREE = "X", "."


class AddressPool:
    """The addresses of version 4 of one network. Those of the nics in it are told by the caller."""

    def __init__(self, network: Network, used: Iterable[str] = ()) -> None:
        """Look at a network.

        Args:
            network: whose addresses these are.
            used: by nics; those outside of the network are none of ours.
        """
        self.network = network
        self._range = range_of(network)
        first, last = self._range[0], self._range[-1]
        gateway = filter(None, (network.gateway,))
        reserved = {int(IPv4Address(text)) for text in (*network.reserved, *gateway)}
        self._reserved = reserved | {int(first), int(last)}
        self._used = {int(IPv4Address(text)) for text in used if self.is_inside(text)}

    def is_inside(self, address: str) -> bool:
        """Tell whether this is an address of the network."""
        return is_version_4(address) and IPv4Address(address) in self._range

    @property
    def size(self) -> int:
        return self._range.num_addresses

    @property
    def taken_count(self) -> int:
        """How many no new nic can have."""
        return len(self._reserved | self._used)

    @property
    def map(self) -> str:
        """One letter for each address in order: ``X`` is taken, ``.`` is free."""
        letters = [FREE] * self.size
        for number in self._reserved | self._used:
            letters[number - int(self._range[0])] = TAKEN
        return "".join(letters)

    def reserved(self) -> Iterator[str]:
        """Yield the addresses that no nic is given, in order: also the first and the last."""
        yield from (str(IPv4Address(number)) for number in sorted(self._reserved))

    def take_free(self) -> str:
        """Return the first address that is free, which is taken then.

        Raises:
            NoCapacity: there is none left.
        """
        start, taken = int(self._range[0]), self._reserved | self._used
        for number in range(start, start + self.size):
            if number not in taken:
                self._used.add(number)
                return str(IPv4Address(number))
        raise NoCapacity(
            f"All addresses of the network {self.network.name} ({self.network.network}) are taken.",
            network=self.network.name,
        )

    def take(self, address: str) -> None:
        """Take an address that somebody asks for.

        Raises:
            InvalidRequest: it is none of the network's.
            Conflict: it is taken, or reserved.
        """
        name = self.network.name
        if not self.is_inside(address):
            raise InvalidRequest(
                f"{address} is not in the network {name}, which is {self.network.network}.",
                network=name,
            )
        number = int(IPv4Address(address))
        if number in self._reserved:
            raise Conflict(f"{address} is reserved in the network {name}.", network=name)
        if number in self._used:
            raise Conflict(f"{address} is taken by a nic in the network {name}.", network=name)
        self._used.add(number)

    def release(self, address: str) -> None:
        """Take back what a nic has."""
        if self.is_inside(address):
            self._used.discard(int(IPv4Address(address)))


def is_version_4(address: str) -> bool:
    try:
        IPv4Address(address)
    except ValueError:
        return False
    return True
