"""Copies between two clusters that only pretend."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from msgspec.structs import replace

from common.errors import NodeFailure
from common.model.disk import StreamBacking
from common.names import DiskId
from common.noderpc.copies import BrokenOff, Offer, Stranger
from common.noderpc.disks import DiskSpec
from noded.copies.chunks import CHUNK
from noded.copies.expecting import CONFIRMED_S
from noded.copies.interface import Fetched

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
    give_up_at: float
    is_confirmed: bool
    done: float = 0.0  # MiB
    is_there: bool = False
    problem: NodeFailure | None = None
    has_ended: bool = False


@dataclass
class _Brought:
    disk: DiskSpec
    peer: Stranger
    host: str
    offer: Offer
    begun_at: float
    looked_at: float
    done: float = 0.0
    visited: "tuple[FakeBetween, str] | None" = None
    problem: NodeFailure | None = None
    has_ended: bool = False


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
            self._brought.pop(each, None)

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
        self._expected[copy] = _Expected(disk, peer, offer, _now() + wait_s, not until_confirmed)
        return offer

    def confirm(self, copy: str) -> None:
        """Let who has brought a copy hear that it is there."""
        if (expected := self._expected.get(copy)) is None:
            raise NodeFailure("This node knows nothing of this copy any more.", copy=copy)
        if not expected.is_confirmed:
            expected.is_confirmed, expected.give_up_at = True, _now() + CONFIRMED_S

    def is_to_come(self, copy: str) -> bool:
        """Tell whether a copy has not come, and nobody can hear that it has."""
        expected = self._expected.get(copy)
        return expected is not None and not (expected.is_there or expected.is_confirmed)

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

    def brings(self, copy: str) -> bool:
        """Tell whether a copy is being brought, or has been."""
        brought = self._brought.get(copy)
        return brought is not None and brought.problem is None

    def bring(self, copy: str, disk: DiskSpec, peer: Stranger, host: str, offer: Offer) -> None:
        before = self._brought.get(copy)
        done = before.done if before and not _is_stream(disk) else 0.0
        self._brought[copy] = _Brought(disk, peer, host, offer, _now(), _now(), done)

    def look(self, copy: str) -> Fetched | None:
        """Tell how far a copy is; None of one that is within a cluster."""
        self.settle()
        if brought := self._brought.get(copy):
            if brought.problem:
                raise brought.problem
            return _fetched(brought.disk, brought.done, has_ended=brought.has_ended)
        if expected := self._expected.get(copy):
            if expected.problem:
                raise expected.problem
            if not expected.has_ended and _now() > expected.give_up_at:
                what = " to hear that all is there" if expected.is_there else ""
                raise NodeFailure(f"Nobody has come from {expected.peer.name}{what}.")
            return replace(
                _fetched(expected.disk, expected.done, has_ended=expected.has_ended),
                is_there=expected.is_there,
            )
        return None

    def settle(self) -> None:
        """Bring all that goes over the bridge up to now."""
        for machine in self._bridge.machines.values():
            machine.bring_on()

    def bring_on(self) -> None:
        for each in self._brought.values():
            self._bring_on(each)

    def expecting(self, offer: Offer, certificate: str) -> str | None:
        for copy, each in self._expected.items():
            is_it = each.offer == offer and each.peer.certificate == certificate
            if is_it and each.problem is None:
                return copy
        return None

    def expected_of(self, certificate: str) -> list[tuple[str, DiskSpec]]:
        """Return what has not come yet of those with a certificate, with the ids of the copies."""
        every = self._expected.items()
        return [
            (copy, each.disk)
            for copy, each in every
            if each.peer.certificate == certificate and not (each.has_ended or each.problem)
        ]

    def receive(self, copy: str, word: str, done: float) -> str | None:
        """Take what has come; return what has become of it, None as long as that is open."""
        expected = self._expected[copy]
        if expected.is_there:
            expected.has_ended = expected.is_confirmed
            return "" if expected.has_ended else None
        is_whole = done >= expected.disk.size
        self._contents.write(expected.disk, word if is_whole else f"a part of {word}")
        expected.done = done
        ending = self._contents.ending(expected.disk) if is_whole else None
        if ending:
            self.refuse(copy, ending)
        expected.is_there = ending == ""
        expected.has_ended = expected.is_there and expected.is_confirmed
        return None if expected.is_there and not expected.is_confirmed else ending

    def refuse(self, copy: str, problem: str) -> None:
        """Have nothing of a copy after all."""
        self._expected[copy].problem = NodeFailure(problem)

    def break_off(self, copy: str) -> None:
        """Lose who brings a copy; what goes to a script cannot be taken up again."""
        expected = self._expected.get(copy)
        if expected and _is_stream(expected.disk) and not expected.is_there:
            expected.problem = BrokenOff("The connection was closed.", done=0)

    def _bring_on(self, brought: _Brought) -> None:
        if brought.has_ended or brought.problem or _now() - brought.begun_at < CONNECT_S:
            return
        since, brought.looked_at = brought.looked_at, _now()
        found = self._bridge.find(brought.host, brought.peer, brought.offer, self.certificate)
        if found is None:
            if brought.visited:
                there, copy = brought.visited
                there.break_off(copy)
            done = round(brought.done * CHUNK)
            brought.problem = BrokenOff("The connection was refused.", done=done)
            return
        more = (_now() - since) * self._bridge.mib_per_s
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
        brought.has_ended = ending == ""


def _is_stream(disk: DiskSpec) -> bool:
    return isinstance(disk.backing, StreamBacking)


def _fetched(disk: DiskSpec, done: float, *, has_ended: bool) -> Fetched:
    return Fetched(done=round(done * CHUNK), total=disk.size * CHUNK, has_ended=has_ended)


def _now() -> float:
    return asyncio.get_running_loop().time()
