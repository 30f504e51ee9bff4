"""What does the copying on a node; the real one and the fake keep the same promises."""

from collections.abc import Sequence
from typing import Protocol

from common.messages import Report
from common.noderpc.copies import Compression, Offer, Peer, Stranger
from common.noderpc.disks import DiskSpec


class Fetched(Report):
    """How far a copy is; sizes are in bytes of the disk."""

    done: int = 0
    total: int = 0
    expected: int = 0  # of what a script writes, whose total is known at its end; 0: nobody knows
    received: int = 0  # or brought, of bytes that had to be sent
    seconds: float = 0.0  # since it was begun last
    done_before: int = 0  # when it was begun last
    is_there: bool = False  # all of it, durable; the other side is to hear so when confirmed
    has_ended: bool = False


class Copier(Protocol):
    """Copies of this node's disks, by their ids. What is going on outlives this object."""

    async def offer(
        self, copy: str, disk: DiskSpec, peer: Peer, compression: Compression, rate: int
    ) -> Offer:
        """Let one node read a disk; see ``Copies.offer``."""

    async def fetch(self, copy: str, disk: DiskSpec, peer: Peer, host: str, offer: Offer) -> None:
        """Begin to fill a disk, or go on; a fetch that goes on or has succeeded is left alone."""

    async def expect(
        self,
        copy: str,
        disk: DiskSpec,
        peer: Stranger,
        wait_s: float,
        *,
        until_confirmed: bool = False,
    ) -> Offer:
        """Wait for who fills a disk, or go on; see ``Copies.begin_expect``."""

    async def confirm(self, copy: str) -> None:
        """Let the other side hear that it is there, or that this was heard; see ``Copies``.

        ``look`` tells when it has.

        Raises:
            NodeFailure: nothing is known of the copy.
        """

    async def confirm_unless_last(self, copy: str, beside: Sequence[str]) -> None:
        """Confirm a copy that has arrived if one of those ``beside`` has not.

        So there is always one, whatever becomes of who asks, of which nobody hears before it is
        confirmed.
        """

    async def bring(
        self,
        copy: str,
        disk: DiskSpec,
        peer: Stranger,
        host: str,
        offer: Offer,
        compression: Compression,
        rate: int,
        *,
        until_confirmed: bool = False,
    ) -> None:
        """Begin to send a disk, or again; one that goes on or has succeeded is left alone."""

    async def has_arrived(self, copy: str) -> bool:
        """Tell whether all of a copy is there, as far as this node knows."""

    async def look(self, copy: str) -> Fetched:
        """Tell how far a copy is that this node fetches, expects or brings.

        Raises:
            BrokenOff: the connection or the process has ended; begun again, it goes on.
            NodeFailure: it cannot be done, and why.
        """

    async def end(self, copy: str) -> None:
        """End what is going on for a copy, and forget it."""
