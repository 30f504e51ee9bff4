"""A bounded number of places, so shared that whoever takes most of them makes room; pure."""

from collections.abc import Hashable, Iterator
from contextlib import suppress
from ipaddress import IPv6Address, ip_address
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Places(Generic[T]):
    """Knows who is there, from which source, in the order they came.

    When there are too many, the longest there of the source with the most has to go. So a source
    that floods us drives out its own, and one that comes now and then is left alone.
    """

    def __init__(self, most: int, most_each: int | None = None) -> None:
        """Have ``most`` places, of which one source may take ``most_each``."""
        self._most, self._most_each = most, most if most_each is None else most_each
        self._by_source: dict[str, dict[T, None]] = {}
        self._source: dict[T, str] = {}
        self._held: set[T] = set()

    def __len__(self) -> int:
        return len(self._source)

    def __contains__(self, who: T) -> bool:
        return who in self._source

    def __iter__(self) -> Iterator[T]:
        return iter(tuple(self._source))

    @property
    def held(self) -> int:
        """How many will not make room."""
        return len(self._held)

    def take(self, who: T, source: str) -> T | None:
        """Give a place, and return whom that costs theirs: ``who``, if all others are held."""
        self._source[who] = source
        self._by_source.setdefault(source, {})[who] = None
        if len(self._by_source[source]) > self._most_each:
            return self._remove_oldest([source], who)
        if len(self) <= self._most:
            return None
        greediest = max(self._by_source.values(), key=len)
        if not self._held:
            oldest = next(iter(greediest))
            self.leave(oldest)
            return oldest
        return self._remove_oldest(
            sorted(self._by_source, key=lambda each: -len(self._by_source[each])), who
        )

    def hold(self, who: T) -> None:
        """Let ``who`` stay, whoever comes: something is done for it."""
        if who in self._source:
            self._held.add(who)

    def release(self, who: T) -> None:
        """Let ``who`` make room for others again, as one that came just now."""
        self._held.discard(who)
        if who in self._source:
            mates = self._by_source[self._source[who]]
            del mates[who]
            mates[who] = None

    def leave(self, who: T) -> None:
        """Give the place back; harmless for one that has none any more."""
        self._held.discard(who)
        source = self._source.pop(who, None)
        if source is not None:
            del self._by_source[source][who]
            if not self._by_source[source]:
                del self._by_source[source]

    def _remove_oldest(self, sources: list[str], newcomer: T) -> T:
        free = (who for each in sources for who in self._by_source[each] if who not in self._held)
        goes = next((who for who in free if who is not newcomer), newcomer)
        self.leave(goes)
        return goes


def source_of(address: str) -> str:
    """Return what counts as one source: an IPv4 address, or the network of an IPv6 one."""
    with suppress(ValueError):
        ip = ip_address(address)
        if isinstance(ip, IPv6Address):
            return str(ip.ipv4_mapped or IPv6Address(int(ip) >> 64 << 64))
    return address
