"""Copying by processes of their own, which outlive noded."""

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from msgspec.structs import replace

from common.errors import NodeFailure
from common.messages import to_json
from common.model.backing import DumpBacking, StreamBacking
from common.model.disk import Mode
from common.noderpc.copies import BrokenOff, Compression, Offer, Peer, Stranger
from common.noderpc.disks import DiskSpec
from noded.copies.confirmation import FILE as CONFIRMATION
from noded.copies.device import claim
from noded.copies.home import Home
from noded.copies.interface import Copier, Fetched
from noded.copies.listening import listen, offered
from noded.copies.orders import Bringing, Expecting, Fetching, Sending, Side, Task
from noded.images.contents import layout_of
from noded.system.process import Process, start
from noded.system.threads import in_thread

OpenDisk = Callable[[DiskSpec], int]


class ProcessCopier(Copier):
    """Starts a process for each side of a copy, and finds those that a noded before has started."""

    def __init__(
        self, directory: Path, *, identity: Path, address: str, open_disk: OpenDisk
    ) -> None:
        """Keep what has to be known of copies below ``directory``, which is in memory.

        Args:
            directory: see above.
            identity: this node's key and certificate.
            address: where disks are offered.
            open_disk: opens an attached disk; see ``Storage.open``.
        """
        self._directory, self._identity, self._address = directory, identity, address
        self._open_disk = open_disk
        self._children: dict[Path, Process] = {}

    async def offer(
        self, copy: str, disk: DiskSpec, peer: Peer, compression: Compression, rate: int
    ) -> Offer:
        home = self._home(copy, "offer")
        if self._runs(home) and (offer := home.offer()):
            return offer
        await self._end(home)
        with ExitStack() as ours:  # the process has copies of its own
            descriptor = await in_thread(self._open, ours, disk, Mode.READ_ONLY)
            listener = ours.enter_context(listen(self._address))
            offer = offered(listener)
            order = Sending(
                identity=str(self._identity),
                peer=peer,
                secret=offer.secret,
                compression=compression,
                rate=rate,
                path=disk.backing.where,
                disk=descriptor,
                layout=layout_of(disk.backing),
                listener=listener.fileno(),
            )
            home.prepare()
            home.keep(offer)
            self._start(home, order, order.descriptors)
        return offer

    async def fetch(self, copy: str, disk: DiskSpec, peer: Peer, host: str, offer: Offer) -> None:
        home = self._home(copy, "fetch")
        if self._goes_on(home):
            return
        await self._reap(home)
        with ExitStack() as ours:
            descriptor = await in_thread(self._open, ours, disk, Mode.READ_WRITE)
            sums, status = _files(ours, home, "sums", "status.json")
            order = Fetching(
                identity=str(self._identity),
                peer=peer,
                host=host,
                offer=offer,
                path=disk.backing.where,
                disk=descriptor,
                layout=layout_of(disk.backing),
                sums=sums,
                status=status,
                may_grow=isinstance(disk.backing, DumpBacking),
            )
            self._start(home, order, order.descriptors)

    async def expect(
        self,
        copy: str,
        disk: DiskSpec,
        peer: Stranger,
        wait_s: float,
        *,
        until_confirmed: bool = False,
    ) -> Offer:
        home = self._home(copy, "fetch")
        before = home.offer()
        if before and self._goes_on(home):
            return before
        await self._reap(home)
        with ExitStack() as ours:
            descriptor = await in_thread(self._open, ours, disk, Mode.READ_WRITE)
            # Where it was expected before is what the other cluster has been told.
            listener = ours.enter_context(listen(self._address, before.port if before else 0))
            offer = before or offered(listener)
            sums, confirmation, status = _files(ours, home, "sums", CONFIRMATION, "status.json")
            order = Expecting(
                identity=str(self._identity),
                peer=peer,
                wait_s=wait_s,
                secret=offer.secret,
                path=disk.backing.where,
                disk=descriptor,
                layout=layout_of(disk.backing),
                listener=listener.fileno(),
                sums=sums,
                status=status,
                confirmation=confirmation if until_confirmed else None,
            )
            home.keep(offer)
            self._start(home, order, order.descriptors)
        return offer

    async def confirm(self, copy: str) -> None:
        home = self._known(copy)
        if not home.exists:
            raise NodeFailure("This node knows nothing of this copy any more.", copy=copy)
        home.confirm()

    async def confirm_unless_last(self, copy: str, beside: Sequence[str]) -> None:
        # Nothing is awaited in between: of two that come at the same time one is the last.
        home = self._known(copy)
        if home.exists and any(self._known(each).is_to_come for each in beside):
            home.confirm()

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
        home = self._home(copy, "bring")
        if self._goes_on(home):
            return
        await self._reap(home)
        with ExitStack() as ours:
            descriptor = await in_thread(self._open, ours, disk, Mode.READ_ONLY)
            confirmation, status = _files(ours, home, CONFIRMATION, "status.json")
            order = Bringing(
                identity=str(self._identity),
                peer=peer,
                host=host,
                offer=offer,
                compression=compression,
                rate=rate,
                path=disk.backing.where,
                disk=descriptor,
                layout=layout_of(disk.backing),
                status=status,
                confirmation=confirmation if until_confirmed else None,
            )
            self._start(home, order, order.descriptors)

    async def has_arrived(self, copy: str) -> bool:
        return self._known(copy).has_arrived

    async def look(self, copy: str) -> Fetched:
        home = self._known(copy)
        runs, told = self._runs(home), home.told()  # in this order: it may end in between
        fetched = told.fetched if told else Fetched()
        if runs or fetched.has_ended:
            return fetched
        await self._reap(home)
        if told and told.problem:
            kind = NodeFailure if told.is_final else BrokenOff
            raise kind(told.problem, done=fetched.done)
        words = home.last_words()
        raise BrokenOff(
            f"The process that copied has ended.{f' It said: {words}' if words else ''}",
            done=fetched.done,
        )

    async def end(self, copy: str) -> None:
        for side in ("fetch", "offer", "bring"):
            await self._end(self._home(copy, side))

    def _goes_on(self, home: Home) -> bool:
        """Tell whether the process of a home works, or has succeeded."""
        told = home.told()
        return self._runs(home) or bool(told and told.fetched.has_ended)

    def _known(self, copy: str) -> Home:
        """Return what is kept of a copy that this node brings, or else fetches or expects."""
        bring = self._home(copy, "bring")
        return bring if bring.exists else self._home(copy, "fetch")

    def _home(self, copy: str, side: str) -> Home:
        return Home(self._directory / f"{copy}.{side}")

    def _open(self, ours: ExitStack, disk: DiskSpec, mode: Mode) -> int:
        descriptor = self._open_disk(replace(disk, mode=mode))
        ours.callback(os.close, descriptor)
        # A script's stream is nobody's disk, and what is kept inside of an image never changes.
        is_stream = isinstance(disk.backing, StreamBacking)
        if not (is_stream or layout_of(disk.backing).snapshot):
            claim(descriptor, disk.backing.where, to_write=mode is Mode.READ_WRITE)
        return descriptor

    def _start(self, home: Home, order: Side, handed: tuple[int, ...]) -> None:
        reading, writing = os.pipe()
        try:
            os.write(writing, to_json(Task(side=order)))
            os.close(writing)
            program = (sys.executable, "-P", "-m", "noded.copies.worker")
            argv = (*program, str(home.directory), str(reading))
            self._children[home.directory] = started = start(argv, home.log, (*handed, reading))
        finally:
            os.close(reading)
        home.note(started)

    def _runs(self, home: Home) -> bool:
        if child := self._children.get(home.directory):
            return not child.has_ended
        found = home.process()  # of a noded before
        if found is None:
            return False
        with found:
            return not found.has_ended

    async def _end(self, home: Home) -> None:
        if child := self._children.get(home.directory):
            await child.kill()
            await self._reap(home)
        elif found := home.process():
            with found:
                await found.kill()
        home.remove()

    async def _reap(self, home: Home) -> None:
        """Clear a child away that has ended."""
        if child := self._children.pop(home.directory, None):
            with child:
                await child.ended()


def _files(ours: ExitStack, home: Home, *names: str) -> list[int]:
    """Open what a process writes to; what was told of another one before is gone."""
    home.prepare()
    files = [home.open(name) for name in names]
    for file in files:
        ours.callback(os.close, file)
    os.ftruncate(files[-1], 0)
    return files
