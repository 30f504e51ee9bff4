"""Disks that a provider of external storage keeps."""

import logging
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from common.errors import InvalidRequest, NodeFailure
from common.model.backing import ExtBacking
from common.noderpc.disks import Access, DiskReport, DiskSpec
from common.noderpc.snapshots import SnapshotSpec
from noded.storage.attached import AttachedDevices
from noded.storage.block_device import IsDevice, check_unused, open_device, size_of
from noded.storage.ext.environment import environment
from noded.storage.ext.provider import Provider, Script, find_provider
from noded.storage.interface import Storage
from noded.system.execute import CommandFailed, execute
from noded.system.threads import in_thread
from noded.system.turns import Turns

LIMIT_S: Mapping[Script, float] = {
    Script.CREATE: 100,
    Script.REMOVE: 100,
    Script.GROW: 100,
    Script.SNAPSHOT: 100,
}
OTHERS_LIMIT_S = 25.0

log = logging.getLogger(__name__)


class ExtStorage(Storage):
    """Runs the scripts of providers, one after the other for each disk.

    The interface has no way to ask whether a volume exists: one that can be attached does. It is
    attached for a moment to find out, unless it is anyway.
    """

    def __init__(
        self,
        search_path: tuple[Path, ...],
        attached: AttachedDevices,
        *,
        is_device: IsDevice = stat.S_ISBLK,
    ) -> None:
        """Look for providers below ``search_path``; ``is_device`` says what they may attach."""
        self._search_path = search_path
        self._attached = attached
        self._is_device = is_device
        self._turns = Turns()

    def check_place(self, disk: DiskSpec) -> None:
        _volume_of(disk)

    async def ensure_present(self, disk: DiskSpec) -> None:
        async with self._turns.of(disk.id):
            provider, volume = await self._find_provider(disk)
            if await self._find(provider, disk) is not None:
                return
            _check_parameters(provider, volume)
            await _run(provider, Script.CREATE, environment(disk, volume, size=disk.size))
            told = environment(disk, volume, metadata=f"originstname+{disk.instance}")
            await _run(provider, Script.SETINFO, told)

    async def ensure_absent(self, disk: DiskSpec) -> None:
        async with self._turns.of(disk.id):
            provider, volume = await self._find_provider(disk)
            if device := self._attached.find(disk.id):
                await in_thread(self._check_unused, device)
                raise NodeFailure(f"The disk {device} is attached; detach it first.", path=device)
            is_known = await self._find(provider, disk) is not None
            try:
                await _run(provider, Script.REMOVE, environment(disk, volume))
            except CommandFailed as error:
                if is_known:
                    raise
                # It could not be attached either, so there is none, or it is out of reach.
                log.warning("%s is taken for removed: %s", volume.name, error)

    async def grow(self, disk: DiskSpec) -> None:
        async with self._turns.of(disk.id):
            provider, volume = await self._find_provider(disk)
            found = await self._find(provider, disk)
            if found is None:
                raise NodeFailure(f"The disk {volume.name} cannot be grown: it is not there.")
            if found.size < disk.size:
                told = environment(disk, volume, size=found.size, new_size=disk.size)
                await _run(provider, Script.GROW, told)

    async def find(self, disk: DiskSpec) -> DiskReport | None:
        async with self._turns.of(disk.id):  # else it could detach what has just been attached
            provider, _ = await self._find_provider(disk)
            return await self._find(provider, disk)

    async def attach(self, disk: DiskSpec, access: Access) -> str:
        async with self._turns.of(disk.id):
            provider, volume = await self._find_provider(disk)
            try:
                device = await self._run_attach(provider, disk, volume)
            except CommandFailed as error:
                raise NodeFailure(
                    f"The disk {volume.name} cannot be attached: {error.message}",
                    volume=volume.name,
                ) from error
            await in_thread(self._report, disk, device)  # it is a device, and can be opened
            self._attached.keep(disk.id, device)
            told = environment(disk, volume, exclusive=access is not Access.SHARED)
            await _run(provider, Script.OPEN, told)
            return device

    async def detach(self, disk: DiskSpec) -> None:
        async with self._turns.of(disk.id):
            provider, volume = await self._find_provider(disk)
            if device := self._attached.find(disk.id):
                await in_thread(self._check_unused, device)
                await _run(provider, Script.CLOSE, environment(disk, volume))
                await _run(provider, Script.DETACH, environment(disk, volume))
                self._attached.forget(disk.id)

    async def snapshot_problem(self, disk: DiskSpec) -> str:
        provider, _ = await self._find_provider(disk)
        return _snapshot_problem(provider)

    async def take_snapshots(self, wanted: Sequence[SnapshotSpec]) -> None:
        for each in wanted:
            async with self._turns.of(each.of.id):
                provider, volume = await self._find_provider(each.of)
                if problem := _snapshot_problem(provider):
                    raise NodeFailure(problem, provider=provider.name)
                kept = _volume_of(each.kept)
                told = environment(each.of, volume, size=each.of.size, snapshot=kept)
                await _run(provider, Script.SNAPSHOT, told)

    def open(self, disk: DiskSpec) -> int:
        _volume_of(disk)
        if not (device := self._attached.find(disk.id)):
            raise NodeFailure(
                f"The disk {disk.id} cannot be opened: it is not attached.", disk=disk.id
            )
        return open_device(device, disk.mode, is_device=self._is_device)

    async def _find_provider(self, disk: DiskSpec) -> tuple[Provider, ExtBacking]:
        volume = _volume_of(disk)
        return await in_thread(find_provider, volume.provider, self._search_path), volume

    async def _find(self, provider: Provider, disk: DiskSpec) -> DiskReport | None:
        if device := self._attached.find(disk.id):
            return await in_thread(self._report, disk, device)
        volume = _volume_of(disk)
        try:
            device = await self._run_attach(provider, disk, volume)
        except CommandFailed:
            return None
        try:
            return await in_thread(self._report, disk, device)
        finally:
            await _run(provider, Script.DETACH, environment(disk, volume))

    async def _run_attach(self, provider: Provider, disk: DiskSpec, volume: ExtBacking) -> str:
        """Return the path of the device, which comes first of what the script prints."""
        printed = await _run(provider, Script.ATTACH, environment(disk, volume))
        device = printed.partition("\n")[0].strip()
        if not device.startswith("/") or not device.isprintable():
            raise NodeFailure(
                f"The provider {provider.name} attached no block device; disks that only programs "
                "can reach, by a URI, are not supported.",
                provider=provider.name,
            )
        return device

    def _report(self, disk: DiskSpec, device: str) -> DiskReport:
        size = size_of(device, is_device=self._is_device)
        return DiskReport(id=disk.id, instance=disk.instance, size=size)

    def _check_unused(self, device: str) -> None:
        check_unused(device, is_device=self._is_device)


def _snapshot_problem(provider: Provider) -> str:
    if Script.SNAPSHOT in provider.scripts:
        return ""
    return (
        f"The provider {provider.name} takes no snapshots on this node: it has no script "
        f"“{Script.SNAPSHOT}”."
    )


def _volume_of(disk: DiskSpec) -> ExtBacking:
    backing: object = disk.backing
    if not isinstance(backing, ExtBacking):
        raise InvalidRequest("This disk is kept by no provider of external storage.", disk=disk.id)
    if not backing.name.startswith(f"{disk.id}."):
        raise InvalidRequest(f"The volume “{backing.name}” is not this disk's.", disk=disk.id)
    return backing


def _check_parameters(provider: Provider, volume: ExtBacking) -> None:
    known = sorted(name for name, _ in provider.parameters)
    for name in volume.parameters:
        if name not in known:
            raise InvalidRequest(
                f"The provider {provider.name} has no parameter “{name}”; it has "
                f"{', '.join(known) or 'none'}.",
                parameter=name,
            )


async def _run(provider: Provider, script: Script, told: Mapping[str, str]) -> str:
    if script not in provider.scripts:
        return ""  # it is optional
    finished = await execute(
        provider.script(script),
        timeout_s=LIMIT_S.get(script, OTHERS_LIMIT_S),
        environment=told,
        directory=str(provider.directory),
    )
    return finished.stdout.decode(errors="replace")
