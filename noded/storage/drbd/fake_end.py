"""One end of a mirrored disk that only pretends: what is on its volumes, and how it is just now."""

from collections.abc import Callable
from dataclasses import dataclass, field

from common.names import MiB
from common.noderpc.disks import Access
from common.noderpc.mirrors import Copying, CopyState, Link, MirrorReport
from noded.storage.drbd.module import Connection

JUST_CREATED = "0000000000000004"
NONE = "0" * 16
KIB = 1024


@dataclass(slots=True)
class Copy:
    """What is on the two volumes of one end; it outlives any power cut."""

    generations: list[str] = field(default_factory=lambda: [JUST_CREATED, NONE, NONE, NONE])
    is_consistent: bool = False
    was_up_to_date: bool = False
    peer_is_outdated: bool = False
    dirty_kib: int = 0
    is_all_dirty: bool = True
    data: str = ""  # which volume it tells of: LVM's UUID
    written: float = 0.0  # until when that has what guests wrote
    has_crashed: bool = False  # while it was primary; it has not met its peer since
    number: int | None = None  # of the node, as DRBD 9 notes it at the first attachment


@dataclass(frozen=True, slots=True)
class Heard:
    """What an end heard from its peer last; while it says nothing more, that is taken for true."""

    at: float = 0.0
    primary: bool = False
    state: CopyState = CopyState.UNKNOWN


@dataclass(slots=True)
class End:
    """One node's device."""

    resource: str
    minor: int
    address: str  # of its node
    is_used: Callable[[], bool]
    number: int = 0  # of the two
    state: CopyState = CopyState.NONE
    copy: Copy | None = None
    volumes: tuple[str, str] | None = None
    size: MiB = MiB(0)
    rate_kib: int = 1
    connection: Connection | None = None
    secret: str = ""
    discard: bool = False
    allows_two: bool = False
    link: Link = Link.NONE
    heard: Heard = Heard()
    primary: bool = False
    was_forced: bool = False  # to be primary with a copy that was not up-to-date, for no guest yet
    copying: Copying = Copying.NOTHING

    @property
    def has_good_copy(self) -> bool:
        return self.state is CopyState.UP_TO_DATE

    def part(self) -> None:
        """Give up the peer; who asked for it says what becomes of the connection."""
        self.link = Link.NONE
        self.connection = None


def compare(one: End, other: End) -> int | None:
    """Return which of two ends is to copy to the other: 1, -1, or 0 for neither; None: they part.

    Source: drbd_uuid_compare() in drbd_receiver.c of Linux 6.1, by its rules.
    """
    a, b = one.copy, other.copy
    assert a is not None
    assert b is not None
    mine, theirs = a.generations, b.generations
    if mine[0] == theirs[0] == JUST_CREATED:
        return 0
    if mine[0] == JUST_CREATED:
        a.is_all_dirty = True
        return -1
    if theirs[0] == JUST_CREATED:
        b.is_all_dirty = True
        return 1
    if mine[0] == theirs[0]:
        if a.is_consistent != b.is_consistent:  # a copying was cut off
            return 1 if a.is_consistent else -1
        return int(a.has_crashed) - int(b.has_crashed)
    if mine[1] == theirs[0]:
        return 1
    if mine[0] == theirs[1]:
        return -1
    if theirs[0] in mine[2:]:
        a.is_all_dirty = True
        return 1
    if mine[0] in theirs[2:]:
        b.is_all_dirty = True
        return -1
    if mine[1] == theirs[1] != NONE and one.discard != other.discard:
        return -1 if one.discard else 1
    return None


def report(end: End, peer: End | None) -> MirrorReport:
    """Return how an end is, as the module tells it."""
    told = Heard(primary=peer.primary, state=peer.state) if peer else end.heard
    if end.link is not Link.CONNECTED:
        told = Heard(state=_last_heard(end))
    copy = end.copy or (peer.copy if peer else None)
    behind = copy.dirty_kib if copy else 0
    rate = (peer if end.copying is Copying.TO_PEER and peer else end).rate_kib
    return MirrorReport(
        primary=end.primary,
        peer_primary=told.primary,
        own=end.state,
        peer=told.state,
        link=end.link,
        copying=end.copying,
        percent=100.0 - 100.0 * behind / max(end.size * KIB, 1) if end.size else 100.0,
        behind_kib=behind,
        rate_kib=0 if end.copying is Copying.NOTHING else rate,
        generations=tuple(end.copy.generations) if end.copy else (),
    )


def _last_heard(end: End) -> CopyState:
    is_known = end.copy is not None and end.copy.peer_is_outdated
    return CopyState.OUTDATED if is_known else CopyState.UNKNOWN


def access_of(end: End) -> Access:
    if not end.primary:
        return Access.STANDBY
    return Access.SHARED if end.allows_two else Access.SOLE
