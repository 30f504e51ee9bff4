"""Copies between two clusters that only pretend."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Protocol

from common.errors import NodeFailure
from common.model.backing import StreamBacking
from common.names import DiskId
from common.noderpc.copies import BrokenOff, Offer, Stranger
from common.noderpc.disks import DiskSpec
from noded.copies.chunks import CHUNK
from noded.copies.expecting import CONFIRMED_S
from noded.copies.interface import Fetched
from noded.copies.serving import SYNC_S

CONNECT_S = 0.01


class Contents(Protocol):
    """What is on disks that only pretend; a new one has the empty word on it."""

    def read(self, disk: DiskSpec) -> str: ...
    def write(self, disk: DiskSpec, word: str) -> None: ...
    def ending(self, disk: DiskSpec) -> str | None:
        """Return why a script has failed whose stream this is; None: it goes on."""


@dataclass
class _Expected:
    disk: DiskSpec
    peer: Stranger
    offer: Offer
    wait_s: float
    is_confirmed: bool
    give_up_at: float = inf
    done: float = 0.0  # MiB
    is_visited: bool = False
    is_there: bool = False
    problem: NodeFailure | None = None
    has_ended: bool = False

    @property
    def is_open(self) -> bool:
        return not (self.problem or self.has_ended)

    def wait(self) -> None:
        """Begin to wait for who comes, or comes again."""
        self.is_visited = False
        if not self.is_there or self.is_confirmed:
            self.give_up_at = _now() + (CONFIRMED_S if self.is_there else self.wait_s)


@dataclass
class _Brought:
    disk: DiskSpec
    peer: Stranger
    host: str
    offer: Offer
    mib_per_s: float
    begun_at: float
    looked_at: float
    is_confirmed: bool
    done: float = 0.0
    visited: "tuple[FakeBetween, str] | None" = None
    give_up_at: float = inf
    is_there: bool = False
    problem: NodeFailure | None = None
    has_ended: bool = False

    def hang_up(self) -> None:
        """Have who expects it notice that nobody brings it any more."""
        if self.visited:
            there, copy = self.visited
            there.break_off(copy)


@dataclass
class FakeBridge:
    """The machines of two clusters that can reach one another, by cluster and address."""

    mib_per_s: float = 1024
    reaches: bool = True
    ports: int = 30_000
    machines: dict[tuple[str, str], "FakeBetween"] = field(default_factory=dict)

    def find(
        self, host: str, peer: Stranger, offer: Offer, certificate: str
    ) -> "tuple[FakeBetween, str] | None":
        """Return where, and under which id, one who shows ``certificate`` may bring a disk."""
        for (_, address), machine in self.machines.items():
            is_it = self.reaches and address == host and machine.certificate == peer.certificate
            copy = machine.expecting(offer, certificate) if is_it else None
            if copy is not None:
                return machine, copy
        return None


class FakeBetween:
    """What one machine expects from another cluster, and brings there."""

    def __init__(
        self,
        cluster: str,
        address: str,
        bridge: FakeBridge,
        *,
        certificate: Callable[[], str],
        contents: Contents,
    ) -> None:
        self._bridge, self._certificate, self._contents = bridge, certificate, contents
        self._expected: dict[str, _Expected] = {}
        self._brought: dict[str, _Brought] = {}
        bridge.machines[cluster, address] = self

    @property
    def certificate(self) -> str:
        return self._certificate()

    @property
    def known(self) -> set[str]:
        return {*self._expected, *self._brought}

    def uses(self, disk: DiskId) -> bool:
        every: list[_Expected | _Brought] = [*self._expected.values(), *self._brought.values()]
        return any(disk == each.disk.id and not (each.has_ended or each.problem) for each in every)

    def forget(self, copy: str | None = None) -> None:
        """End one copy, or all of them."""
        for each in [copy] if copy else self.known:
            self._expected.pop(each, None)
            if brought := self._brought.pop(each, None):
                brought.hang_up()

    def expect(
        self,
        copy: str,
        disk: DiskSpec,
        peer: Stranger,
        wait_s: float,
        *,
        until_confirmed: bool = False,
    ) -> Offer:
        self._bridge.ports += 1
        offer = Offer(port=self._bridge.ports, secret=f"secret {self._bridge.ports}")
        self._expected[copy] = expected = _Expected(disk, peer, offer, wait_s, not until_confirmed)
        expected.wait()
        return offer

    def confirm(self, copy: str) -> None:
        """Let the other side hear that it is there, or that this was heard."""
        if brought := self._brought.get(copy):
            brought.is_confirmed = True
            return
        if (expected := self._expected.get(copy)) is None:
            raise NodeFailure("This node knows nothing of this copy any more.", copy=copy)
        if not expected.is_confirmed:
            expected.is_confirmed = True
            expected.give_up_at = _now() + SYNC_S
            if not expected.is_visited:
                expected.wait()

    def is_to_come(self, copy: str) -> bool:
        """Tell whether a copy has not arrived, and nobody can hear that it has."""
        known = self._known(copy)
        return known is not None and not (known.is_there or known.is_confirmed)

    def has_arrived(self, copy: str) -> bool:
        known = self._known(copy)
        return known is not None and known.is_there

    def _known(self, copy: str) -> _Brought | _Expected | None:
        return self._brought.get(copy) or self._expected.get(copy)

    def offered(self, copy: str) -> Offer | None:
        expected = self._expected.get(copy)
        return expected.offer if expected else None

    def is_broken(self, copy: str) -> bool:
        """Tell whether who brought it has broken off in the middle of what is not sent twice."""
        expected = self._expected.get(copy)
        return expected is not None and isinstance(expected.problem, BrokenOff)

    def expect_anew(self, copy: str) -> None:
        """Wait again, where it was expected, for all of it."""
        expected = self._expected[copy]
        expected.problem, expected.done = None, 0.0
        expected.wait()

    def brings(self, copy: str) -> bool:
        """Tell whether a copy is being brought, or has been."""
        brought = self._brought.get(copy)
        return brought is not None and brought.problem is None

    def bring(
        self,
        copy: str,
        disk: DiskSpec,
        peer: Stranger,
        host: str,
        offer: Offer,
        rate: int = 0,
        *,
        until_confirmed: bool = False,
    ) -> None:
        before = self._brought.get(copy)
        done = before.done if before and not _is_stream(disk) else 0.0
        is_confirmed = not until_confirmed or bool(before and before.is_confirmed)
        now = _now()
        mib_per_s = rate or inf
        self._brought[copy] = _Brought(
            disk, peer, host, offer, mib_per_s, now, now, is_confirmed, done
        )

    def look(self, copy: str) -> Fetched | None:
        """Tell how far a copy is; None of one that is within a cluster."""
        self.settle()
        if brought := self._brought.get(copy):
            if brought.problem:
                raise brought.problem
            return _fetched(brought)
        if expected := self._expected.get(copy):
            if expected.problem:
                raise expected.problem
            return _fetched(expected)
        return None

    def settle(self) -> None:
        """Bring all that goes over the bridge up to now."""
        for machine in self._bridge.machines.values():
            machine.bring_on()

    def bring_on(self) -> None:
        for expected in self._expected.values():
            if expected.is_open and _now() > expected.give_up_at:
                what = " to hear that all is there" if expected.is_there else ""
                problem = f"Nobody has come from {expected.peer.name}{what}."
                expected.problem = NodeFailure(problem)
        for brought in self._brought.values():
            if not (brought.problem or brought.has_ended):
                self._bring_on(brought)

    def expecting(self, offer: Offer, certificate: str) -> str | None:
        for copy, each in self._expected.items():
            is_it = each.offer == offer and each.peer.certificate == certificate
            if is_it and each.is_open:
                return copy
        return None

    def expected_of(self, certificate: str) -> list[tuple[str, DiskSpec]]:
        """Return what has not come yet of those with a certificate, with the ids of the copies."""
        every = self._expected.items()
        return [
            (copy, each.disk)
            for copy, each in every
            if each.peer.certificate == certificate and each.is_open
        ]

    def receive(self, copy: str, word: str, done: float) -> str | None:
        """Take what has come; return what has become of it, None as long as that is open."""
        expected = self._expected[copy]
        if not expected.is_visited:
            expected.is_visited = True
            expected.give_up_at = _now() + SYNC_S if expected.is_there else inf
        if expected.is_there:
            return "" if expected.is_confirmed else None
        is_whole = done >= expected.disk.size
        self._contents.write(expected.disk, word if is_whole else f"a part of {word}")
        expected.done = done
        ending = self._contents.ending(expected.disk) if is_whole else None
        if ending:
            self.refuse(copy, ending)
        expected.is_there = ending == ""
        if expected.is_there:
            expected.give_up_at = _now() + SYNC_S
        return None if expected.is_there and not expected.is_confirmed else ending

    def hear(self, copy: str) -> None:
        """Hear that it was heard that all is there."""
        self._expected[copy].has_ended = True

    def refuse(self, copy: str, problem: str) -> None:
        """Have nothing of a copy after all."""
        self._expected[copy].problem = NodeFailure(problem)

    def break_off(self, copy: str) -> None:
        """Lose who brings a copy; what goes to a script cannot be taken up again."""
        expected = self._expected.get(copy)
        if expected is None or not expected.is_open:
            return
        expected.wait()
        if _is_stream(expected.disk) and not expected.is_there:
            expected.problem = BrokenOff("The connection was closed.", done=0)

    def _bring_on(self, brought: _Brought) -> None:
        if _now() - brought.begun_at < CONNECT_S:
            return
        since, brought.looked_at = brought.looked_at, _now()
        found = self._bridge.find(brought.host, brought.peer, brought.offer, self.certificate)
        if found is None:
            brought.hang_up()
            done = round(brought.done * CHUNK)
            brought.problem = BrokenOff("The connection was refused.", done=done)
            return
        if brought.is_there:
            self._see_let_go(brought, *found)
            return
        more = (_now() - since) * min(brought.mib_per_s, self._bridge.mib_per_s)
        brought.done = min(brought.disk.size, brought.done + more)
        brought.visited = there, copy = found
        is_whole = brought.done >= brought.disk.size
        ending = self._contents.ending(brought.disk) if is_whole else None
        if ending:
            there.refuse(copy, ending)
        elif not is_whole or ending == "":
            ending = there.receive(copy, self._contents.read(brought.disk), brought.done)
        if ending:
            brought.problem = NodeFailure(f"{brought.peer.name}: {ending}")
        brought.is_there, brought.give_up_at = ending == "", _now() + SYNC_S
        if brought.is_there:
            self._see_let_go(brought, there, copy)

    def _see_let_go(self, brought: _Brought, there: "FakeBetween", copy: str) -> None:
        if brought.is_confirmed:
            there.hear(copy)
            brought.has_ended = True
        elif _now() > brought.give_up_at:
            brought.problem = NodeFailure("The cluster of this node has not recorded that.")
            brought.hang_up()


def _is_stream(disk: DiskSpec) -> bool:
    return isinstance(disk.backing, StreamBacking)


def _fetched(known: _Expected | _Brought) -> Fetched:
    return Fetched(
        done=round(known.done * CHUNK),
        total=known.disk.size * CHUNK,
        is_there=known.is_there,
        has_ended=known.has_ended,
    )


def _now() -> float:
    return asyncio.get_running_loop().time()
