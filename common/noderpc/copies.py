"""Copying a disk's data from node to node: one node offers it, another fetches it.

A copy has one id on both sides. What it does goes on while noded is restarted, and one that broke
off goes on from where it was when it is begun again under the same id.

Between two clusters it is the other way around: where the data goes, one expects it, and who has it
sends it there. For then each cluster tells the other one only what it knows by that time.
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


Pem = Annotated[str, Meta(max_length=64 << 10)]
Patience = Annotated[float, Meta(ge=1, le=30 * 86_400)]  # seconds


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


class Stranger(Order):
    """A node of another cluster: what it is called there, and its certificate, in PEM form."""

    name: NodeName
    certificate: Pem


class Offer(Report):
    """Where a disk's data is had, or brought, and what proves that one is meant to do so."""

    port: Port
    secret: Word


class Copies(NodeService, prefix="copies"):
    """Copies of disks that one node offers and another fetches, or expects and another sends."""

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

    @rpc(timeout=30, safe_to_repeat=True)
    @abstractmethod
    async def begin_expect(
        self,
        *,
        copy: CopyId,
        disk: DiskSpec,
        peer: Stranger,
        wait_s: Patience,
        task: TaskId,
        until_confirmed: bool = False,
        beside: tuple[CopyId, ...] = (),
    ) -> Offer:
        """Begin the task that fills an attached disk with what ``peer`` brings.

        Done as ``begin_fetch`` is. Who broke off may come again. Begun again, by another task, it
        goes on where it was, and the answer is the same as long as this node has not lost power.

        Args:
            copy: which.
            disk: what is written; no guest may have it open.
            peer: who may bring it, and nobody else.
            wait_s: how long nobody has to come for it to be given up.
            task: the new task's id; cancelled, nobody watches the copy, which goes on.
            until_confirmed: ``peer`` does not hear that all is there before ``begin_confirm``,
                for which it waits an hour; unless more is to come than this.
            beside: copies that this node expects for the same instance. Of all of them the last
                one to come waits; of the others ``peer`` hears at once.

        Raises:
            NodeFailure: the disk is not attached, or in use.
        """

    @rpc(timeout=30, safe_to_repeat=True)
    @abstractmethod
    async def begin_confirm(self, *, copy: CopyId, task: TaskId) -> None:
        """Begin the task that lets the other side hear what it waits for, at the end of a copy.

        Who has brought a disk hears that all of it is there: then its cluster may let go of what
        it has. Who expected it hears that this is so: then its cluster may start what has come.

        Done when that was heard, or said by who has nothing more to hear. It fails with a
        NodeFailure if nobody came to hear it, or this node knows nothing of the copy any more.

        Args:
            copy: one that has come, or was brought, and was to be confirmed.
            task: the new task's id.
        """

    @rpc(timeout=30, safe_to_repeat=True)
    @abstractmethod
    async def has_arrived(self, *, copy: CopyId) -> bool:
        """Tell whether all of a copy is there, durable, be it that this node expects or brings it.

        Of what it brings the other side has said so. Of what it does not know it has not arrived.
        """

    @rpc(timeout=30, safe_to_repeat=True)
    @abstractmethod
    async def begin_send(
        self,
        *,
        copy: CopyId,
        disk: DiskSpec,
        peer: Stranger,
        host: str,
        offer: Offer,
        compression: Compression,
        rate: Rate,
        task: TaskId,
        until_confirmed: bool = False,
        beside: tuple[CopyId, ...] = (),
    ) -> None:
        """Begin the task that brings what is on an attached disk to ``peer``, who expects it.

        Done when ``peer`` says that all of it is there, durable. It may be watched by several
        tasks, one after the other.

        Args:
            copy: which.
            disk: what is read; no guest may have it open.
            peer: who expects it.
            host: the peer's IP address.
            offer: as the peer told it.
            compression: of what is sent.
            rate: of what is sent.
            task: the new task's id; cancelled, nobody watches the copy, which goes on.
            until_confirmed: ``peer`` does not hear that this was heard before ``begin_confirm``,
                for which it waits an hour; unless more is to be brought than this.
            beside: copies that this node brings of the same instance. Of all of them the last
                one of which ``peer`` says that it is there is held back; of the others it hears
                at once.

        Raises:
            NodeFailure: the disk is not attached, or in use.
        """

    @rpc(timeout=60, safe_to_repeat=True)
    @abstractmethod
    async def ensure_ended(self, *, copy: CopyId) -> None:
        """Have nothing to do with this copy any more, and forget it; what was written stays."""
