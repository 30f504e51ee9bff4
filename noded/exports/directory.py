"""Exports in a directory of root's, each a directory with ``config.ini`` and its dumps."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from common.errors import NodeFailure, NotFound
from common.model.disk import Mode
from common.names import MiB, check_name
from common.noderpc.disks import Access, DiskReport, DiskSpec
from common.noderpc.exports import ExportReport
from noded.durable_file import explaining, sync_directory, write_durably
from noded.exports.interface import CONFIG, ExportStore, dump_of
from noded.storage.file_calls import is_locked
from noded.system.threads import in_thread

MIB = 1 << 20


class ExportDirectory(ExportStore):
    """Dumps are files with holes: they take as much space as has data on it."""

    def __init__(self, root: Path) -> None:
        """Keep exports below ``root``, which is made when it is needed."""
        self._root = root

    async def exports(self) -> tuple[str, ...]:
        return await in_thread(self._exports)

    async def show(self, export: str) -> ExportReport:
        check_name(export, "export")
        return await in_thread(self._show, export)

    async def finish(self, export: str, config: str) -> None:
        check_name(export, "export")
        await in_thread(self._finish, export, config)

    async def remove(self, export: str) -> None:
        check_name(export, "export")
        await in_thread(self._remove, export)

    def check_place(self, disk: DiskSpec) -> None:
        dump_of(disk)

    async def ensure_present(self, disk: DiskSpec) -> None:
        await in_thread(self._create, disk)

    async def ensure_absent(self, disk: DiskSpec) -> None:
        await in_thread(self._delete, disk)

    async def find(self, disk: DiskSpec) -> DiskReport | None:
        return await in_thread(self._find, disk)

    async def grow(self, disk: DiskSpec) -> None:
        path = self._path(disk)
        raise NodeFailure(f"{path} is part of an export and does not grow.", path=str(path))

    async def attach(self, disk: DiskSpec, access: Access) -> str:  # noqa: ARG002 -- it is a file
        """Look whether it is there: a file needs no more."""
        os.close(await in_thread(self.open, disk))
        return str(self._path(disk))

    async def detach(self, disk: DiskSpec) -> None:
        self.check_place(disk)

    def open(self, disk: DiskSpec) -> int:
        access = os.O_RDONLY if disk.mode is Mode.READ_ONLY else os.O_RDWR
        with explaining(f"open {self._path(disk)}"):
            return os.open(self._path(disk), access | os.O_NOFOLLOW | os.O_CLOEXEC)

    def _path(self, disk: DiskSpec) -> Path:
        dump = dump_of(disk)
        where = self._root / dump.export if dump.is_finished else self._unfinished(dump.export)
        return where / dump.name

    def _unfinished(self, export: str) -> Path:
        return self._root / f".{export}.new"  # no name of an export begins like that

    def _create(self, disk: DiskSpec) -> None:
        path = self._path(disk)
        with explaining(f"make {path}"):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(path, flags, 0o600)
            try:
                if os.fstat(descriptor).st_size < disk.size * MIB:
                    os.ftruncate(descriptor, disk.size * MIB)
            finally:
                os.close(descriptor)

    def _delete(self, disk: DiskSpec) -> None:
        path = self._path(disk)
        with explaining(f"delete {path}"), suppress(FileNotFoundError):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                if is_locked(descriptor):
                    raise NodeFailure(f"{path} is in use: it is being copied.", path=str(path))
            finally:
                os.close(descriptor)
            path.unlink()
            with suppress(OSError):  # there are others
                path.parent.rmdir()

    def _find(self, disk: DiskSpec) -> DiskReport | None:
        try:
            size = self._path(disk).lstat().st_size
        except OSError:
            return None
        return DiskReport(id=disk.id, instance=None, size=MiB(-(-size // MIB)))

    def _exports(self) -> tuple[str, ...]:
        try:
            entries = list(os.scandir(self._root))
        except OSError:
            return ()
        return tuple(sorted(e.name for e in entries if e.is_dir() and not e.name.startswith(".")))

    def _show(self, export: str) -> ExportReport:
        directory = self._root / export
        if not directory.is_dir():
            raise NotFound(f"There is no export {export} on this node.", export=export)
        with explaining(f"read {directory / CONFIG}"):
            config = (directory / CONFIG).read_text(encoding="utf-8", errors="replace")
            files = [e for e in os.scandir(directory) if e.is_file() and e.name != CONFIG]
            sizes = {e.name: MiB(-(-e.stat().st_size // MIB)) for e in files}
        return ExportReport(name=export, config=config, dumps=sizes)

    def _finish(self, export: str, config: str) -> None:
        made, place, former = self._unfinished(export), self._root / export, self._former(export)
        if not made.is_dir():
            if place.is_dir():
                return
            raise NotFound(f"No export {export} is being made on this node.", export=export)
        with explaining(f"finish the export {export}"):
            write_durably(made / CONFIG, config.encode())
            shutil.rmtree(former, ignore_errors=True)
            with suppress(FileNotFoundError):
                place.rename(former)
            made.rename(place)
            sync_directory(self._root)
            shutil.rmtree(former, ignore_errors=True)

    def _remove(self, export: str) -> None:
        former = self._former(export)
        with explaining(f"delete the export {export}"):
            shutil.rmtree(former, ignore_errors=True)
            with suppress(FileNotFoundError):
                (self._root / export).rename(former)  # at once: half an export is none
                shutil.rmtree(former)

    def _former(self, export: str) -> Path:
        return self._root / f".{export}.old"
