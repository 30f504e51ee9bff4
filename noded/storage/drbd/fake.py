"""DRBD's module of one machine that only pretends; it refuses what the real one refuses."""

from collections.abc import Callable

from common.errors import NodeFailure
from common.model.disk_parameters import DrbdParameters
from common.names import DiskId, InstanceId, MiB
from common.noderpc.disks import Access
from common.noderpc.mirrors import Copying, CopyState, Link
from noded.storage.drbd.conversion import why_not_converted
from noded.storage.drbd.fake_end import (
    JUST_CREATED,
    KIB,
    NONE,
    Copy,
    End,
    access_of,
    report,
)
from noded.storage.drbd.fake_pairs import FakePairs
from noded.storage.drbd.mirror import OURS
from noded.storage.drbd.module import Connection, Device, DrbdModule, InUse, ModuleState
from noded.storage.lvm.device import mapper_path
from noded.storage.lvm.fake import FakeVolumes
from noded.storage.lvm.volumes import Volume, VolumeReport

UNKNOWN = {CopyState.NONE, CopyState.UNKNOWN}


class FakeDrbd(DrbdModule):
    """The devices of one machine, at ``address`` on the secondary network.

    ``module`` is for scenarios to set: which version it is, and what it lacks.
    """

    def __init__(
        self,
        pairs: FakePairs,
        volumes: FakeVolumes,
        address: str,
        *,
        uses: Callable[[DiskId], bool] = lambda _: False,
    ) -> None:
        """Make a module; ``uses`` tells whether a guest of this machine has a disk open."""
        self.module = ModuleState(version="8.4.11")
        self._pairs = pairs
        self._volumes = volumes
        self._address = address
        self._uses = uses
        self._ends: dict[int, End] = {}
        self._copies: dict[str, Copy] = {}  # by LVM's UUID of the metadata's volume

    async def state(self) -> ModuleState:
        return self.module

    async def look(self) -> tuple[Device, ...]:
        self._pairs.settle()
        return tuple(self._device(end) for end in self._ends.values())

    async def ensure_meta(self, minor: int, path: str) -> None:  # noqa: ARG002
        self._copies.setdefault(self._uuid(path), Copy())

    async def create(self, resource: str, minor: int, number: int) -> None:
        if minor in self._ends:
            if self._ends[minor].resource == resource:
                return
            raise _refusal("Minor or volume exists already (delete it first)")
        disk = DiskId(resource.removeprefix(OURS))
        end = End(resource, minor, self._address, is_used=lambda: self._uses(disk), number=number)
        self._ends[minor] = end
        self._pairs.ends.append(end)

    async def attach(
        self, minor: int, data: str, meta: str, size: MiB, parameters: DrbdParameters
    ) -> None:
        end = self._end(minor)
        if end.copy is not None:
            raise _refusal("Device is attached to a disk (use detach first)")
        content, copy = self._uuid(data), self._copies.get(self._uuid(meta))
        if copy is None:
            raise _refusal("No valid meta-data signature found.")
        there = self._at(data)
        if there is not None and there.size < size:
            raise _refusal("Low.dev. smaller than requested DRBD-dev. size.")
        if self.module.version.startswith("9."):
            self._check_number(copy, end.number)
        elif copy.number is not None:
            raise _refusal("No valid meta-data signature found.")
        if copy.data != content:
            copy.data, copy.written = content, 0.0
        end.volumes, end.copy, end.size = (data, meta), copy, size
        end.rate_kib = parameters.resync_rate
        end.state = CopyState.INCONSISTENT
        if copy.is_consistent:
            end.state = CopyState.CONSISTENT if copy.was_up_to_date else CopyState.OUTDATED
        if end.state is CopyState.CONSISTENT and copy.peer_is_outdated:
            end.state = CopyState.UP_TO_DATE
        self._volumes.held |= self._names(end)
        self._meet_anew(end)

    @staticmethod
    def _check_number(copy: Copy, number: int) -> None:
        """Do what DRBD 9 does with metadata of its own, or that are to become so."""
        if copy.number is None and copy.is_consistent:
            bitmap, is_used = copy.generations[1], int(copy.has_crashed)
            words = [copy.generations[0], bitmap, NONE, NONE, "1", "1", str(is_used), *"0000"]
            if reason := why_not_converted(":".join(words)):
                raise _refusal(f"the metadata are of 8.4, and are not converted: {reason}")
        if copy.number not in (None, number):
            raise _refusal(f"ambiguous node id: meta-data: {copy.number}, config: {number}")
        copy.number = number

    async def detach(self, minor: int) -> None:
        self._pairs.settle()
        end = self._end(minor)
        self._volumes.held -= self._names(end)
        peer = self._pairs.peer(end)
        end.copy, end.volumes, end.state = None, None, CopyState.NONE
        end.copying = Copying.NOTHING
        if peer is not None:
            peer.copying = Copying.NOTHING
            if peer.has_good_copy and peer.copy and peer.copy.generations[1] == NONE:
                self._pairs.new_generation(peer)

    async def connect(
        self,
        connection: Connection,
        secret: str,
        parameters: DrbdParameters,  # noqa: ARG002
        *,
        discard: bool,
        allow_two: bool,
    ) -> None:
        end = self._of(connection.resource)
        if end.connection is not None:
            raise _refusal("Local address(port) already in use.")
        end.connection, end.secret, end.discard = connection, secret, discard
        end.allows_two, end.link = allow_two, Link.CONNECTING
        self._pairs.settle()

    async def disconnect(self, connection: Connection) -> None:
        self._pairs.settle()
        end = self._of(connection.resource)
        peer = self._pairs.peer(end)
        end.part()
        end.copying = Copying.NOTHING
        if peer is not None:
            if end.primary and end.copy and end.copy.generations[1] == NONE and end.has_good_copy:
                self._pairs.new_generation(end)
            behind = end if peer.primary else peer
            if end.primary != peer.primary:
                self._pairs.outdate(behind)
                ahead = peer if behind is end else end
                if ahead.copy is not None:
                    ahead.copy.peer_is_outdated = True
            self._pairs.lose_peer(peer)  # it is told
        self._pairs.settle()

    async def allow_two(self, connection: Connection, *, allowed: bool) -> None:
        self._pairs.settle()
        end = self._of(connection.resource)
        peer = self._pairs.peer(end)
        if not allowed and end.primary and peer is not None and peer.primary:
            raise _refusal("Need the verify-alg or both are primary: two primaries are in use")
        for each in (end, peer):
            if each is not None:
                each.allows_two = allowed

    async def promote(self, resource: str, minor: int, *, force: bool) -> None:  # noqa: ARG002
        self._pairs.settle()
        end = self._end(minor)
        peer = self._pairs.peer(end)
        if end.primary:
            return
        if peer is not None and peer.primary and not end.allows_two:
            raise _failed(-1, "Multiple primaries not allowed by config")
        good = [each for each in (end, peer) if each is not None and each.has_good_copy]
        forced = not good and force and end.state not in UNKNOWN
        if not good and not forced:
            raise _failed(-2, "Need access to UpToDate data")
        if end.connection is None or peer is None:
            if not force and not (end.copy and end.copy.peer_is_outdated):
                raise _failed(-7, "Refusing to be Primary while peer is not outdated")
            if end.copy is not None:
                end.copy.peer_is_outdated = True
        if forced:
            self._force(end, peer)
        if end.copy and (forced or (peer is None and end.copy.generations[1] == NONE)):
            self._pairs.new_generation(end)
        end.primary = True
        self._pairs.settle()

    def _force(self, end: End, peer: End | None) -> None:
        assert end.copy is not None
        end.was_forced = end.copy.generations[0] != JUST_CREATED
        self._pairs.become_good(end)
        if peer is not None and peer.copy is not None:
            end.copy.dirty_kib = end.size * KIB
            end.copying, peer.copying = Copying.TO_PEER, Copying.FROM_PEER
            peer.copy.dirty_kib = end.copy.dirty_kib

    async def demote(self, resource: str, minor: int) -> None:  # noqa: ARG002
        self._pairs.settle()
        end = self._end(minor)
        if end.primary and end.is_used():
            raise InUse(f"DRBD refused to make /dev/drbd{minor} secondary: it is held open.")
        if end.was_forced:  # and never used: it was declared good by somebody's word
            self._pairs.given_up.add(end.resource)
        end.primary = end.was_forced = False

    async def remove(self, resource: str) -> None:
        end = next((end for end in self._ends.values() if end.resource == resource), None)
        if end is None:
            return
        await self.demote(resource, end.minor)
        if end.connection is not None:
            await self.disconnect(end.connection)
        self._volumes.held -= self._names(end)
        del self._ends[end.minor]
        self._pairs.ends.remove(end)

    async def resize(self, minor: int, size: MiB) -> None:
        self._pairs.settle()
        end = self._end(minor)
        peer = self._pairs.peer(end)
        if end.copying is not Copying.NOTHING:
            raise _refusal("Resize not allowed during resync.")
        if not end.primary and (peer is None or not peer.primary):
            raise _refusal("Need one Primary node to resize.")
        if peer is None:
            raise _refusal("Protocol version 93 required to use --assume-clean")
        for each in (end, peer):
            if each.copy is not None:
                each.size = size

    async def declare_equal(self, minor: int) -> None:
        self._pairs.settle()
        end = self._end(minor)
        peer = self._pairs.peer(end)
        both = [each.copy for each in (end, peer) if each is not None and each.copy is not None]
        if len(both) < 2 or any(copy.generations[0] != JUST_CREATED for copy in both):
            raise _refusal("Need to be StandAlone")
        self._pairs.new_generation(end)
        current = both[0].generations[0]
        for each, copy in zip((end, peer), both, strict=True):
            assert each is not None
            self._pairs.become_good(each)
            copy.generations = [current, NONE, NONE, NONE]
            copy.dirty_kib, copy.is_all_dirty = 0, False

    def open(self, resource: str, minor: int, *, read_only: bool) -> int:  # noqa: ARG002 -- there is nothing to be read
        """Refuse what could not be opened."""
        end = self._ends.get(minor)
        if end is None or end.resource != resource or not end.primary:
            raise NodeFailure(f"/dev/drbd{minor} cannot be opened: it is not attached.")
        return -1

    # For scenarios

    @property
    def attached(self) -> dict[DiskId, Access]:
        """Return the disks that are set up here, and for whom."""
        return {
            DiskId(end.resource.removeprefix(OURS)): access_of(end) for end in self._ends.values()
        }

    @property
    def without_copy(self) -> list[DiskId]:
        """Return the disks that are set up here and have no volumes, sorted."""
        ends = (end for end in self._ends.values() if end.copy is None)
        return sorted(DiskId(end.resource.removeprefix(OURS)) for end in ends)

    def lose_power(self) -> None:
        """Lose all devices; the copies stay, and those in use are as a crash left them."""
        self._pairs.settle()
        for end in self._ends.values():
            if end.copy is not None:
                end.copy.has_crashed = end.primary
            self._pairs.ends.remove(end)
        self._ends.clear()

    def fail_volumes(self, resource: str) -> None:
        """Have the volumes of a device make errors: it goes on without them."""
        self._pairs.settle()
        end = self._of(resource)
        self._volumes.held -= self._names(end)
        end.copy, end.volumes, end.state = None, None, CopyState.NONE

    # The parts of it

    def _end(self, minor: int) -> End:
        if minor not in self._ends:
            raise _refusal("Device minor not allocated")
        return self._ends[minor]

    def _of(self, resource: str) -> End:
        for end in self._ends.values():
            if end.resource == resource:
                return end
        raise _refusal("Unknown resource")

    def _uuid(self, path: str) -> str:
        there = self._at(path)
        if there is None or not there.is_active:
            raise _refusal(f"Can not open device '{path}': No such file or directory")
        return there.uuid

    def _at(self, path: str) -> VolumeReport | None:
        for group in self._volumes.groups.values():
            for there in group.volumes.values():
                disk, instance = there.disk or DiskId(""), there.instance or InstanceId("")
                if mapper_path(Volume(there.place, disk, instance)) == path:
                    return there
        return None

    def _names(self, end: End) -> set[str]:
        there = [self._at(path) for path in end.volumes or ()]
        return {f"{each.place.group}/{each.place.name}" for each in there if each is not None}

    def _meet_anew(self, end: End) -> None:
        """Compare copies again on a connection that was there before the volumes were."""
        peer = self._pairs.peer(end)
        if peer is not None:
            end.link = peer.link = Link.CONNECTING
        self._pairs.settle()

    def _device(self, end: End) -> Device:
        return Device(
            resource=end.resource,
            minor=end.minor,
            volumes=end.volumes,
            connection=end.connection,
            allows_two=end.allows_two,
            size=end.size,
            report=report(end, self._pairs.heard(end)),
        )


def _refusal(words: str) -> NodeFailure:
    return NodeFailure(f"DRBD refused: {words}")


def _failed(number: int, words: str) -> NodeFailure:
    return NodeFailure(f"DRBD refused: State change failed: ({number}) {words}")
