"""Copying a disk's data from node to node: one node offers it, another fetches it.

A copy has one id on both sides. What it does goes on while noded is restarted, and one that broke
off goes on from where it was when it is begun again under the same id.
"""

from abc import abstractmethod
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from common.errors import NodeFailure
from common.messages import Order, Report
from common.names import KeyId, NodeName, Port, TaskId, Word
from common.noderpc.disks import DiskSpec
from common.rpc.declare import NodeService, rpc

CopyId = Annotated[str, Meta(pattern=r"^[0-9A-Za-z-]{1,128}$")]  # becomes a file name
Rate = Annotated[int, Meta(ge=0, le=2**20)]  # MiB per second; 0: as fast as it goes


class BrokenOff(NodeFailure):
    """A copy ended before its end, and can go on; ``done`` in the detail is how far it came."""

    code = "node-failure.broken-off"


class Compression(StrEnum):
    """How data is made smaller on its way; what does not become smaller is sent as it is."""

    NONE = "none"
    FAST = "gzip-fast"
    GZIP = "gzip"
    SLOW = "gzip-slow"


class Peer(Order):
    """The other node; an empty ``key`` is not known, and any certificate of that name counts."""

    name: NodeName
    key: KeyId = KeyId("")


class Offer(Report):
    """Where a disk's data is had, and what proves that one is meant to have it."""

    port: Port
    secret: Word


class Copies(NodeService, prefix="copies"):
    """Copies of disks that one node offers and another fetches."""

    @rpc(timeout=30, safe_to_repeat=True)
    @abstractmethod
    async def offer(
        self, *, copy: CopyId, disk: DiskSpec, peer: Peer, compression: Compression, rate: Rate
    ) -> Offer:
        """Let ``peer``, and nobody else, read an attached disk; an offer that stands is kept.

        It stands until the copy is ended, or nobody has come for an hour.

        Args:
            copy: which.
            disk: what is read; no guest may have it open.
            peer: who fetches it.
            compression: of what is sent.
            rate: of what is sent.

        Raises:
            NodeFailure: the disk is not attached, or in use.
        """

    @rpc(timeout=30, safe_to_repeat=True)
    @abstractmethod
    async def begin_fetch(
        self, *, copy: CopyId, disk: DiskSpec, peer: Peer, host: str, offer: Offer, task: TaskId
    ) -> None:
        """Begin the task that fills an attached disk with what ``peer`` offers.

        Done when all of it is on this disk, durable, and as the peer has read it. One that broke
        off goes on from where it was. It may be watched by several tasks, one after the other.

        Args:
            copy: which.
            disk: what is written; no guest may have it open.
            peer: who offers it.
            host: the peer's IP address.
            offer: as the peer told it.
            task: the new task's id; cancelled, nobody watches the copy, which goes on.

        Raises:
            NodeFailure: the disk is not attached, or in use.
        """

    @rpc(timeout=60, safe_to_repeat=True)
    @abstractmethod
    async def ensure_ended(self, *, copy: CopyId) -> None:
        """Offer and fetch this copy no more, and forget it; what was written stays written."""
