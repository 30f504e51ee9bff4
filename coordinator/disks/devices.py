"""What no two disks may have: devices that are adopted, and the numbers of mirrored ones."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import count

from common.errors import Conflict, NoCapacity
from common.model.backing import BlockBacking, DrbdBacking
from common.model.disk import Disk
from common.names import NodeId

PORTS = range(11000, 15000)  # Ganeti's
MOST_MINORS = 1 << 20  # the kernel's


class Devices:
    """Gives out what no disk has: neither one of the configuration, nor one that is being made.

    Two that look at once must not be given the same, so what is given out is promised before
    anything is waited for.
    """

    def __init__(self, disks: Iterable[Disk], new_secret: Callable[[], str]) -> None:
        """Look at ``disks``, those of other jobs that are not in the configuration yet included."""
        self.new_secret = new_secret
        self._minors: dict[NodeId, set[int]] = defaultdict(set)
        self._ports: dict[NodeId, set[int]] = defaultdict(set)
        self._adopted: set[str] = set()
        for disk in disks:
            if isinstance(disk.backing, BlockBacking):
                self._adopted.add(disk.backing.device)
            if isinstance(disk.backing, DrbdBacking):
                for node, minor in disk.backing.minors.items():
                    self._minors[node].add(minor)
                    self._ports[node].add(disk.backing.port)

    def adopted(self, device: str) -> str:
        """Return a block device that is no disk's yet; it is taken from now on.

        Raises:
            Conflict: it is a disk already.
        """
        if device in self._adopted:
            raise Conflict(f"The device {device} is a disk already.", device=device)
        self._adopted.add(device)
        return device

    def minor(self, node: NodeId) -> int:
        """Return the lowest minor that is free on a node; it is taken from now on.

        Raises:
            NoCapacity: the node has all that there can be.
        """
        taken = self._minors[node]
        minor = next(number for number in count() if number not in taken)
        if minor >= MOST_MINORS:
            raise NoCapacity("The node has as many mirrored disks as there can be.", node=node)
        taken.add(minor)
        return minor

    def port(self, nodes: Sequence[NodeId]) -> int:
        """Return the lowest port that is free on all ``nodes``; it is taken from now on.

        Raises:
            NoCapacity: they have as many mirrored disks as there are ports.
        """
        taken = [self._ports[node] for node in nodes]
        port = next((p for p in PORTS if not any(p in each for each in taken)), None)
        if port is None:
            raise NoCapacity(
                f"All ports from {PORTS[0]} to {PORTS[-1]} are taken by mirrored disks of these "
                "nodes.",
                nodes=list(nodes),
            )
        for each in taken:
            each.add(port)
        return port
