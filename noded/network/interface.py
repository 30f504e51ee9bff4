"""What a node can do with its network; the real driver and the fake keep the same promises."""

from typing import Protocol

from common.model.master_address import MasterAddress
from common.names import NicId
from common.noderpc.network import NicSpec, TapReport


class NetworkDriver(Protocol):
    """Taps, the host's ends of guests' network cards; and the address that the master has.

    Everything is found again after a restart of noded: a tap carries the UUIDs of its nic and
    instance. Every method may be repeated.
    """

    async def prepare(self) -> None:
        """Find out what this node can do, before anybody asks."""

    @property
    def unguarded(self) -> str:
        """Why guests here can send with the addresses of others; empty if they cannot."""

    async def check(self, nics: tuple[NicSpec, ...]) -> None:
        """Check that taps for ``nics`` could be made and plugged in.

        Raises:
            InvalidRequest: a nic makes no sense.
            NodeFailure: its link does not exist, or its mode is not supported.
        """

    async def ensure_taps(self, nics: tuple[NicSpec, ...]) -> tuple[str, ...]:
        """Make a tap for each nic and plug it in; return their names, in the order given.

        Raises:
            InvalidRequest, NodeFailure: as ``check``; or the kernel refuses.
        """

    async def remove_taps(self, nics: tuple[NicId, ...]) -> None:
        """Delete the taps of these nics, and any whose making noded did not survive."""

    async def taps(self) -> tuple[TapReport, ...]:
        """Return all taps this node made for guests, by name."""

    async def links(self, names: tuple[str, ...]) -> tuple[bool, ...]:
        """Tell for each name whether it is a bridge, or a switch, of this node."""

    async def hold(self, address: MasterAddress, for_s: int) -> None:
        """Have an address for some seconds from now; it is taken away when they are over.

        Raises:
            Conflict: the node has it for good.
            NodeFailure: there is no such device, or the kernel refuses.
        """

    async def let_go(self, ip: str) -> None:
        """Have an address no more that was held; one that is here for good stays."""

    async def holds(self, ip: str) -> str:
        """Return the name of the device that has an address, or nothing."""
