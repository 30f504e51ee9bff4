"""What the process of a copy is told when it starts. Its files are descriptors it has got."""

from common.messages import Order
from common.noderpc.copies import Compression, Offer, Peer, Stranger
from noded.images.contents import Layout


class Sending(Order, tag="send"):
    identity: str  # a directory
    peer: Peer  # who may come
    secret: str
    compression: Compression
    rate: int  # MiB per second; 0: as fast as it goes
    path: str  # of the disk, for messages
    disk: int
    listener: int
    layout: Layout

    @property
    def descriptors(self) -> tuple[int, ...]:
        return self.disk, self.listener


class Fetching(Order, tag="fetch"):
    identity: str
    peer: Peer  # whom it is fetched from
    host: str
    offer: Offer
    path: str
    disk: int
    sums: int  # of the chunks that are there, as far as the copy had come before
    status: int
    layout: Layout
    may_grow: bool = False  # a dump, which is as long as what a script has written

    @property
    def descriptors(self) -> tuple[int, ...]:
        return self.disk, self.sums, self.status


class Expecting(Order, tag="expect"):
    identity: str
    peer: Stranger  # who may bring it
    wait_s: float
    secret: str
    path: str
    disk: int
    listener: int
    sums: int
    status: int
    layout: Layout
    confirmation: int | None = None  # without which nobody hears that all is there; None: at once
    may_grow: bool = False

    @property
    def descriptors(self) -> tuple[int, ...]:
        waits_for = () if self.confirmation is None else (self.confirmation,)
        return self.disk, self.listener, self.sums, self.status, *waits_for


class Bringing(Order, tag="bring"):
    identity: str
    peer: Stranger  # who expects it
    host: str
    offer: Offer
    compression: Compression
    rate: int
    path: str
    disk: int
    status: int
    layout: Layout
    confirmation: int | None = None  # without which nobody hears that it was heard; None: at once

    @property
    def descriptors(self) -> tuple[int, ...]:
        waits_for = () if self.confirmation is None else (self.confirmation,)
        return self.disk, self.status, *waits_for


Side = Sending | Fetching | Expecting | Bringing


class Task(Order):
    """What is read from the descriptor."""

    side: Side
