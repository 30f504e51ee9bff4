"""Copies that only pretend: what is on a disk is a word, which arrives after a while."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from common.errors import NodeFailure
from common.model.backing import StreamBacking
from common.names import DiskId
from common.noderpc.copies import BrokenOff, Compression, Offer, Peer, Stranger
from common.noderpc.disks import DiskSpec
from noded.copies.chunks import CHUNK
from noded.copies.fake_between import CONNECT_S, Contents, FakeBetween, FakeBridge
from noded.copies.interface import Copier, Fetched
from noded.storage.storages import Storages


@dataclass
class _Offered:
    disk: DiskSpec
    peer: Peer
    offer: Offer
    rate: int = 0  # MiB per second; 0: as fast as it goes
    taken_by: object = None  # the first that came, where others would find nothing any more


@dataclass
class _Fetching:
    disk: DiskSpec
    source: str  # its address
    offer: Offer
    done: float = 0.0  # MiB
    done_before: float = 0.0
    begun_at: float = 0.0
    looked_at: float = 0.0
    problem: NodeFailure | None = None
    has_ended: bool = False

    @property
    def is_active(self) -> bool:
        return not (self.problem or self.has_ended)


@dataclass
class FakeWires:
    """What the copiers of one cluster share: who can be reached where, and who offers what."""

    reaches: Callable[[str, str], bool] = lambda _source, _target: True
    mib_per_s: float = 1024  # for scenarios to change
    ports: int = 20_000
    copiers: dict[str, "FakeCopier"] = field(default_factory=dict)  # by address
    bridge: FakeBridge = field(default_factory=FakeBridge)  # to another cluster
    cluster: str = "ours"  # tells the two on it apart


class FakeCopier(Copier):
    """One machine's copies. Like processes they go on without noded, and end with the power."""

    def __init__(
        self,
        name: str,
        address: str,
        wires: FakeWires,
        *,
        storages: Storages,
        contents: Contents,
        is_guests: Callable[[DiskId], bool] = lambda _: False,
        certificate: Callable[[], str] = lambda: "",
    ) -> None:
        """Copy disks of the machine at ``address``; ``is_guests`` tells whether a guest has one."""
        self._name, self._address, self._wires = name, address, wires
        self._storages, self._contents, self._is_guests = storages, contents, is_guests
        self._offered: dict[str, _Offered] = {}
        self._fetching: dict[str, _Fetching] = {}
        self._between = FakeBetween(
            wires.cluster, address, wires.bridge, certificate=certificate, contents=contents
        )
        wires.copiers[address] = self

    def uses(self, disk: DiskId) -> bool:
        """Tell whether a copy has a disk of this machine open."""
        fetching = (each.disk.id for each in self._fetching.values() if each.is_active)
        offered = (each.disk.id for each in self._offered.values())
        return disk in [*offered, *fetching] or self._between.uses(disk)

    def power_off(self) -> None:
        self._offered.clear()
        self._fetching.clear()
        self._between.forget()

    def shown_to(self, node: str, copy: str, offer: Offer, visit: object) -> str | None:
        """Return what a node may read of a disk; None if that is nothing."""
        offered = self._offered.get(copy)
        if offered is None or offered.offer != offer or offered.peer.name != node:
            return None
        offered.taken_by = offered.taken_by or visit
        if isinstance(offered.disk.backing, StreamBacking) and offered.taken_by is not visit:
            return None
        return self._contents.read(offered.disk)

    def ending_of(self, copy: str) -> str | None:
        """Return why the script has failed that is copied from; None: it goes on."""
        offered = self._offered.get(copy)
        return self._contents.ending(offered.disk) if offered else None

    def rate_of(self, copy: str) -> int:
        """Return how many MiB per second may be sent; 0: as fast as it goes."""
        return self._offered[copy].rate

    @property
    def certificate(self) -> str:
        """What this machine shows to those of another cluster."""
        return self._between.certificate

    @property
    def known(self) -> tuple[str, ...]:
        """The copies of which something is left, for tests to look at."""
        return tuple(sorted({*self._offered, *self._fetching, *self._between.known}))

    async def offer(
        self,
        copy: str,
        disk: DiskSpec,
        peer: Peer,
        compression: Compression,  # noqa: ARG002 -- words are short
        rate: int,
    ) -> Offer:
        if copy not in self._offered:
            self._open(disk)
            self._wires.ports += 1
            offer = Offer(port=self._wires.ports, secret=f"secret {self._wires.ports}")
            self._offered[copy] = _Offered(disk, peer, offer, rate)
        return self._offered[copy].offer

    async def fetch(self, copy: str, disk: DiskSpec, peer: Peer, host: str, offer: Offer) -> None:  # noqa: ARG002
        self._settle(copy)
        before = self._fetching.get(copy)
        if before and (before.is_active or before.has_ended):
            return
        self._open(disk)
        done = before.done if before else 0.0
        self._fetching[copy] = _Fetching(
            disk, host, offer, done=done, done_before=done, begun_at=_now(), looked_at=_now()
        )

    async def expect(
        self,
        copy: str,
        disk: DiskSpec,
        peer: Stranger,
        wait_s: float,
        *,
        until_confirmed: bool = False,
    ) -> Offer:
        if offer := self._between.offered(copy):
            if self._between.is_broken(copy):
                self._storages.open(disk)
                self._between.expect_anew(copy)
            return offer
        self._open(disk)
        return self._between.expect(copy, disk, peer, wait_s, until_confirmed=until_confirmed)

    async def confirm(self, copy: str) -> None:
        self._between.confirm(copy)

    async def confirm_unless_last(self, copy: str, beside: Sequence[str]) -> None:
        if any(self._between.is_to_come(each) for each in beside):
            self._between.confirm(copy)

    async def bring(
        self,
        copy: str,
        disk: DiskSpec,
        peer: Stranger,
        host: str,
        offer: Offer,
        compression: Compression,  # noqa: ARG002 -- words are short
        rate: int,
        *,
        until_confirmed: bool = False,
    ) -> None:
        if not self._between.brings(copy):
            self._open(disk)
            self._between.bring(
                copy, disk, peer, host, offer, rate, until_confirmed=until_confirmed
            )

    async def has_arrived(self, copy: str) -> bool:
        return self._between.has_arrived(copy)

    async def look(self, copy: str) -> Fetched:
        if between := self._between.look(copy):
            return between
        self._settle(copy)
        fetching = self._fetching.get(copy)
        if fetching is None:
            raise BrokenOff("The process that copied has ended.", done=0)
        if fetching.problem:
            raise fetching.problem
        return Fetched(
            done=round(fetching.done * CHUNK),
            total=fetching.disk.size * CHUNK,
            seconds=_now() - fetching.begun_at,
            done_before=round(fetching.done_before * CHUNK),
            has_ended=fetching.has_ended,
        )

    async def end(self, copy: str) -> None:
        self._settle(copy)
        self._offered.pop(copy, None)
        self._fetching.pop(copy, None)
        self._between.forget(copy)

    def settle(self) -> None:
        """Bring all that is fetched up to now."""
        for copy in self._fetching:
            self._settle(copy)
        self._between.settle()

    def _open(self, disk: DiskSpec) -> None:
        self._storages.open(disk)
        if self.uses(disk.id) or self._is_guests(disk.id):
            path = disk.backing.where
            raise NodeFailure(
                f"The disk {path} is in use by a guest, a copy, or a script of an operating "
                "system.",
                path=path,
            )

    def _settle(self, copy: str) -> None:
        fetching = self._fetching.get(copy)
        if fetching is None or not fetching.is_active:
            return
        source = self._find(copy, fetching)
        since, fetching.looked_at = fetching.looked_at, _now()
        if source is None:
            fetching.problem = BrokenOff("The connection broke.", done=round(fetching.done * CHUNK))
            return
        if _now() - fetching.begun_at < CONNECT_S:
            return
        most = self._wires.copiers[fetching.source].rate_of(copy) or self._wires.mib_per_s
        more = (_now() - since) * min(most, self._wires.mib_per_s)
        fetching.done = min(fetching.disk.size, fetching.done + more)
        whole = fetching.done >= fetching.disk.size
        self._contents.write(fetching.disk, source if whole else f"a part of {source}")
        ending = self._wires.copiers[fetching.source].ending_of(copy) if whole else None
        if ending:
            fetching.problem = NodeFailure(ending)
        fetching.has_ended = ending == ""

    def _find(self, copy: str, fetching: _Fetching) -> str | None:
        """Return what the source has to give; None if it cannot be had."""
        if not self._wires.reaches(fetching.source, self._address):
            return None
        source = self._wires.copiers[fetching.source]
        return source.shown_to(self._name, copy, fetching.offer, fetching)


def _now() -> float:
    return asyncio.get_running_loop().time()
