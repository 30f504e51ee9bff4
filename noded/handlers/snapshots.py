"""Calls about snapshots of the disks of this node."""

from collections.abc import Mapping, Sequence

from common.errors import GntError, InvalidRequest, NodeFailure
from common.names import InstanceId, is_uuid
from common.noderpc.disks import DiskSpec
from common.noderpc.instances import GuestState
from common.noderpc.snapshots import Snapshots, SnapshotSpec
from noded.hypervisor.interface import Hypervisor
from noded.storage.interface import Storage
from noded.storage.storages import Storages
from noded.system.turns import Turns

_ALIVE = (GuestState.RUNNING, GuestState.PAUSED)


class SnapshotHandlers(Snapshots):
    """Carried out by the drivers of disks, while that of the guest has it stand still."""

    def __init__(
        self, storages: Storages, hypervisors: Mapping[str, Hypervisor], turns: Turns
    ) -> None:
        """Take turns with other calls for disks of the same instance."""
        self._storages = storages
        self._hypervisors = hypervisors
        self._turns = turns

    async def problems(self, *, disks: tuple[DiskSpec, ...]) -> tuple[str, ...]:
        return tuple([await self._storages.of(disk).snapshot_problem(disk) for disk in disks])

    async def ensure_taken(
        self, *, instance: InstanceId, snapshots: tuple[SnapshotSpec, ...], freeze: bool = False
    ) -> None:
        _check(instance, snapshots)
        async with self._turns.of(instance):
            batches = self._batches(snapshots)
            there = [
                found
                for storage, some in batches
                for found in await storage.find_all([each.kept for each in some])
            ]
            if all(there):
                return
            if any(there):  # those were taken at another moment
                await _delete(batches)
            try:
                await self._take(instance, batches, freeze=freeze)
            except GntError:
                await _delete(batches)
                raise

    async def roll_back(self, *, snapshot: SnapshotSpec) -> None:
        _check(snapshot.of.instance, (snapshot,))
        async with self._turns.of(snapshot.of.instance):
            await self._storages.of(snapshot.of).roll_back(snapshot)

    async def _take(
        self,
        instance: InstanceId,
        batches: Sequence[tuple[Storage, list[SnapshotSpec]]],
        *,
        freeze: bool,
    ) -> None:
        failure: GntError | None = None
        try:
            for hypervisor in self._hypervisors.values() if freeze else ():
                # One that is paused cannot be frozen, which is told.
                alive = [g for g in await hypervisor.guests() if g.state in _ALIVE]
                if instance in (guest.id for guest in alive):
                    await hypervisor.freeze(instance)
            await self._take_standing_still(instance, batches)
        except GntError as error:
            failure = error
            raise
        finally:
            for hypervisor in self._hypervisors.values() if freeze else ():
                try:
                    await hypervisor.thaw(instance)
                except NodeFailure:  # it is tried again until it is thawed
                    if failure is None:
                        raise

    async def _take_standing_still(
        self, instance: InstanceId, batches: Sequence[tuple[Storage, list[SnapshotSpec]]]
    ) -> None:
        try:
            for hypervisor in self._hypervisors.values():
                await hypervisor.stand_still(instance)
            for storage, some in batches:
                await storage.take_snapshots(some)
        finally:
            for hypervisor in self._hypervisors.values():
                await hypervisor.go_on(instance)

    def _batches(
        self, snapshots: Sequence[SnapshotSpec]
    ) -> list[tuple[Storage, list[SnapshotSpec]]]:
        """Return what each driver is asked."""
        batches: dict[int, tuple[Storage, list[SnapshotSpec]]] = {}
        for each in snapshots:
            storage = self._storages.of(each.of)
            batches.setdefault(id(storage), (storage, []))[1].append(each)
        return list(batches.values())


async def _delete(batches: Sequence[tuple[Storage, list[SnapshotSpec]]]) -> None:
    for storage, some in batches:
        for each in some:
            await storage.ensure_absent(each.kept)


def _check(instance: InstanceId, snapshots: Sequence[SnapshotSpec]) -> None:
    for disk in (disk for each in snapshots for disk in (each.of, each.kept)):
        if not (is_uuid(disk.id) and is_uuid(disk.instance)):
            raise InvalidRequest("Disks and instances are told apart by UUIDs.", disk=disk.id)
        if disk.instance != instance:
            raise InvalidRequest(f"The disk {disk.id} is said to be another instance's.")
    for each in snapshots:
        if each.of.id == each.kept.id or type(each.of.backing) is not type(each.kept.backing):
            raise InvalidRequest(f"A snapshot of the disk {each.of.id} is kept beside it.")
