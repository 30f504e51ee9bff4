"""Two ends of a mirrored disk that only pretend to copy: what happens between them as time goes by.

As DRBD does it, as far as it can be seen: generations, the bitmap, who copies what to whom, who is
refused. Nothing runs by itself: whenever somebody looks, everything is brought up to now. What
guests write is not kept; that they wrote, and up to when, is: so a copy tells how old it is.
"""

import asyncio
from collections.abc import Callable, Iterator
from itertools import count

from common.noderpc.mirrors import Copying, CopyState, Link
from noded.storage.drbd.fake_end import KIB, NONE, End, Heard, compare

WRITTEN_KIB_S = 1024  # what a guest changes, once each, while nobody copies it
MISSED_S = 10.0  # until who has nothing to tell its peer notices that it is gone


class FakePairs:
    """All devices of a simulated cluster.

    Attributes:
        reaches: whether what one address sends arrives at another.
        lost: what guests began with a copy that lacked what had been acknowledged, by disk.
        given_up: disks of which a copy was declared good, so that nobody is to complain.
        on_copy: told when one end has got all that is on another.
    """

    def __init__(self, reaches: Callable[[str, str], bool] = lambda _source, _target: True) -> None:
        self.reaches = reaches
        self.ends: list[End] = []
        self.lost: list[str] = []
        self.given_up: set[str] = set()
        self.on_copy: Callable[[End, End], None] = lambda _source, _target: None
        self._acknowledged: dict[str, float] = {}
        self._using: set[tuple[str, str]] = set()
        self._numbers = count(0x10)
        self._settled = 0.0

    def peer(self, end: End) -> End | None:
        """Ask for the end that this one is connected to; one that is gone is missed by that."""
        if end.link is Link.CONNECTED and self.heard(end) is None:
            self.lose_peer(end)
        return self.heard(end)

    def heard(self, end: End) -> End | None:
        """Return the end that this one is connected to, if it is still there."""
        peer = self._counterpart(end)
        if end.link is not Link.CONNECTED or peer is None or peer.link is not Link.CONNECTED:
            return None
        return peer if self._is_up(end, peer) else None

    def new_generation(self, end: End) -> None:
        """Mark that one end is written to without the other."""
        assert end.copy is not None
        old, bitmap, *history = end.copy.generations
        kept = [bitmap, history[0]] if bitmap != NONE else history
        end.copy.generations = [f"{next(self._numbers):016X}", old, *kept]

    def settle(self) -> None:
        """Bring everything up to now."""
        now = asyncio.get_running_loop().time()
        for one, other in self._pairs():
            if self._is_up(one, other):
                self._copy(one, other, now - self._settled)
        self._write(now)
        for end in self.ends:
            if end.link is Link.CONNECTED:
                self._listen(end, now)
        for one, other in self._pairs():
            if one.link is Link.CONNECTING and other.link is Link.CONNECTING:
                self._meet(one, other)
        self._settled = now

    def lose_peer(self, end: End) -> None:
        """Go on without the peer, and look for it."""
        end.link = Link.CONNECTING if end.connection else Link.NONE
        end.copying = Copying.NOTHING
        if end.primary and end.has_good_copy and end.copy and end.copy.generations[1] == NONE:
            self.new_generation(end)

    def outdate(self, end: End) -> None:
        """Note that an end is behind from now on."""
        if end.copy is not None and end.state in (CopyState.UP_TO_DATE, CopyState.CONSISTENT):
            end.state, end.copy.was_up_to_date = CopyState.OUTDATED, False

    def become_good(self, end: End) -> None:
        """Take an end's copy for the newest."""
        assert end.copy is not None
        end.state = CopyState.UP_TO_DATE
        end.copy.is_consistent = end.copy.was_up_to_date = True

    def _listen(self, end: End, now: float) -> None:
        peer = self.heard(end)
        if peer is not None:
            end.heard = Heard(now, primary=peer.primary, state=peer.state)
            return
        other = self._counterpart(end)
        # Who knows of no connection says so.
        is_told = other is not None and self._is_up(end, other)
        if is_told or (end.primary and end.is_used()) or now - end.heard.at >= MISSED_S:
            self.lose_peer(end)

    def _pairs(self) -> Iterator[tuple[End, End]]:
        for place, one in enumerate(self.ends):
            for other in self.ends[place + 1 :]:
                if self._counterpart(one) is other:
                    yield one, other

    def _counterpart(self, end: End) -> End | None:
        if end.connection is None:
            return None
        for other in self.ends:
            there = other.connection
            if there and there.own == end.connection.peer and there.peer == end.connection.own:
                return other
        return None

    def _is_up(self, one: End, other: End) -> bool:
        assert one.connection is not None  # each is the other's counterpart
        assert other.connection is not None
        here, there = one.connection.own.address, other.connection.own.address
        return self.reaches(here, there) and self.reaches(there, here)

    def _write(self, now: float) -> None:
        for end in self.ends:
            if not (end.primary and end.is_used()):
                self._using.discard((end.resource, end.address))
                continue
            peer = self.peer(end)
            good = [each for each in (end, peer) if each and each.has_good_copy and each.copy]
            if (end.resource, end.address) not in self._using:
                self._using.add((end.resource, end.address))
                self._begin_to_use(end, good)
            followers = [e for e in (end, peer) if e and e.copy]
            if not good:
                continue  # its guest gets errors, and nothing is acknowledged
            self._acknowledged[end.resource] = now
            for each in followers:
                if each.copy and each.has_good_copy:
                    each.copy.written = now
            if end.copy and (peer is None or peer.copy is None):
                seconds = max(now - self._settled, 1 / WRITTEN_KIB_S)
                more = end.copy.dirty_kib + int(seconds * WRITTEN_KIB_S)
                end.copy.dirty_kib = min(more, end.size * KIB)

    def _begin_to_use(self, end: End, good: list[End]) -> None:
        end.was_forced = False
        read = next((each.copy.written for each in good if each.copy), -1.0)  # its own, if good
        if read < self._acknowledged.get(end.resource, 0.0):
            if end.resource not in self.given_up:
                self.lost.append(f"{end.resource} on {end.address}")
            self._acknowledged[end.resource] = read

    def _copy(self, one: End, other: End, seconds: float) -> None:
        target = next((e for e in (one, other) if e.copying is Copying.FROM_PEER), None)
        if target is None or not target.copy:
            return
        source = other if target is one else one
        left = max(target.copy.dirty_kib - int(seconds * target.rate_kib), 0)
        target.copy.dirty_kib = left
        if source.copy is not None:
            source.copy.dirty_kib = left
        if left == 0:
            self._finish(source, target)

    def _finish(self, source: End, target: End) -> None:
        assert source.copy is not None
        assert target.copy is not None
        current, bitmap, *history = source.copy.generations
        kept = [bitmap, history[0]] if bitmap != NONE else history
        for end in (source, target):
            assert end.copy is not None
            end.copying = Copying.NOTHING
            end.copy.generations = [current, NONE, *kept]
            end.copy.dirty_kib, end.copy.is_all_dirty = 0, False
            end.copy.peer_is_outdated = False
        target.copy.written = source.copy.written
        self.on_copy(source, target)
        self.become_good(target)

    # What happens when two ends see each other

    def _meet(self, one: End, other: End) -> None:
        if not self._is_up(one, other):
            return
        if one.secret != other.secret or one.allows_two != other.allows_two:
            one.part()
            other.part()
            return
        if one.primary and other.primary and not one.allows_two:
            one.part()
            other.part()
            return
        if one.copy is None or other.copy is None:
            self._join(one, other)
            return
        match compare(one, other):
            case None:
                one.part()
                other.part()
            case 0:
                self._join(one, other)
                self._agree(one, other)
            case 1:
                self._note_discarded(one, other)
                self._join(one, other)
                self._begin_copying(one, other)
            case _:
                self._note_discarded(one, other)
                self._join(one, other)
                self._begin_copying(other, one)

    def _join(self, one: End, other: End) -> None:
        for end in (one, other):
            end.link = Link.CONNECTED
            end.discard = False
            end.heard = Heard(asyncio.get_running_loop().time())
            if end.copy is not None:
                end.copy.has_crashed = False

    def _agree(self, one: End, other: End) -> None:
        """Both have the same generation: what either knows of it holds for both."""
        for end in (one, other):
            if end.state in (CopyState.CONSISTENT, CopyState.OUTDATED):
                self.become_good(end)

    def _begin_copying(self, source: End, target: End) -> None:
        assert source.copy is not None
        assert target.copy is not None
        is_full = source.copy.is_all_dirty or target.copy.is_all_dirty
        dirty = source.size * KIB if is_full else source.copy.dirty_kib + target.copy.dirty_kib
        source.copy.dirty_kib = target.copy.dirty_kib = min(max(dirty, 4), source.size * KIB)
        self.become_good(source)
        source.copying, target.copying = Copying.TO_PEER, Copying.FROM_PEER
        target.state = CopyState.INCONSISTENT
        target.copy.is_consistent = target.copy.was_up_to_date = False
        source.copy.peer_is_outdated = True

    def _note_discarded(self, one: End, other: End) -> None:
        is_split = _parted_at(one) == _parted_at(other) != NONE
        if is_split and one.discard != other.discard:
            self.given_up.add(one.resource)


def _parted_at(end: End) -> str:
    return end.copy.generations[1] if end.copy else NONE
