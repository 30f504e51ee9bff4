"""What the fake hypervisors of one cluster share: the wires between them."""

import asyncio
from collections.abc import Callable

from noded.hypervisor.fake_guest import Guest

FIRST_PORT = 10_000


class FakeWorld:
    """Knows who waits for a guest's memory, and who can send it there."""

    def __init__(self) -> None:
        self.listeners: dict[tuple[str, int], Guest] = {}  # by address and port
        self.reaches: Callable[[str, str], bool] = lambda _source, _target: True
        self.machine_at: Callable[[str], str] = lambda address: address  # its first address
        self._next_port = FIRST_PORT
        self._machines: list[Callable[[], None]] = []

    def add(self, settle: Callable[[], None]) -> None:
        """Add a machine; ``settle`` brings it up to now."""
        self._machines.append(settle)

    def new_port(self) -> int:
        """Return a port that nobody had before."""
        self._next_port += 1
        return self._next_port

    def settle(self) -> None:
        """Bring all transfers up to now."""
        for settle in self._machines:
            settle()


def now() -> float:
    """Return what the loop's clock shows, by which all guests live."""
    return asyncio.get_running_loop().time()
