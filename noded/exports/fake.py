"""Exports that exist in memory only."""

from common.errors import NodeFailure, NotFound
from common.names import MiB, check_name
from common.noderpc.disks import Access, DiskReport, DiskSpec
from common.noderpc.exports import ExportReport
from noded.exports.interface import ExportStore, dump_of


class FakeExports(ExportStore):
    """One machine's; ``words`` stand for what is in dumps, by path."""

    def __init__(self) -> None:
        self.finished: dict[str, tuple[str, dict[str, MiB]]] = {}
        self.unfinished: dict[str, dict[str, MiB]] = {}
        self.words: dict[str, str] = {}
        self.used: set[str] = set()  # paths, for scenarios to change

    async def exports(self) -> tuple[str, ...]:
        return tuple(sorted(self.finished))

    async def show(self, export: str) -> ExportReport:
        check_name(export, "export")
        if export not in self.finished:
            raise NotFound(f"There is no export {export} on this node.", export=export)
        config, sizes = self.finished[export]
        return ExportReport(name=export, config=config, dumps=sizes)

    async def finish(self, export: str, config: str) -> None:
        check_name(export, "export")
        made = self.unfinished.pop(export, None)
        if made is None:
            if export in self.finished:
                return
            raise NotFound(f"No export {export} is being made on this node.", export=export)
        await self.remove(export)
        self.finished[export] = config, made
        for name in made:
            if (word := self.words.pop(f".{export}/{name}", None)) is not None:
                self.words[f"{export}/{name}"] = word

    async def remove(self, export: str) -> None:
        check_name(export, "export")
        self.finished.pop(export, None)
        for path in [path for path in self.words if path.startswith(f"{export}/")]:
            del self.words[path]

    def check_place(self, disk: DiskSpec) -> None:
        dump_of(disk)

    async def ensure_present(self, disk: DiskSpec) -> None:
        if await self.find(disk) is None:
            self.unfinished.setdefault(dump_of(disk).export, {})[dump_of(disk).name] = disk.size

    async def ensure_absent(self, disk: DiskSpec) -> None:
        dump = dump_of(disk)
        if await self.find(disk) is None:
            return
        if self._path(disk) in self.used:
            raise NodeFailure(f"{self._path(disk)} is in use: it is being copied.")
        del self._of(disk)[dump.name]
        self.words.pop(self._path(disk), None)
        if not dump.is_finished and not self.unfinished[dump.export]:
            del self.unfinished[dump.export]

    async def find(self, disk: DiskSpec) -> DiskReport | None:
        size = self._of(disk).get(dump_of(disk).name)
        return None if size is None else DiskReport(id=disk.id, instance=None, size=size)

    async def grow(self, disk: DiskSpec) -> None:
        raise NodeFailure(f"{self._path(disk)} is part of an export and does not grow.")

    async def attach(self, disk: DiskSpec, access: Access) -> str:  # noqa: ARG002 -- it is a file
        self.open(disk)
        return self._path(disk)

    async def detach(self, disk: DiskSpec) -> None:
        self.check_place(disk)

    def open(self, disk: DiskSpec) -> int:
        if dump_of(disk).name not in self._of(disk):
            raise NodeFailure(f"Cannot open {self._path(disk)}: No such file or directory.")
        return -1

    def read(self, disk: DiskSpec) -> str:
        """Return the word that stands for what is in a dump."""
        return self.words.get(self._path(disk), "")

    def write(self, disk: DiskSpec, word: str) -> None:
        self.words[self._path(disk)] = word

    def _path(self, disk: DiskSpec) -> str:
        dump = dump_of(disk)
        return f"{'' if dump.is_finished else '.'}{dump.export}/{dump.name}"

    def _of(self, disk: DiskSpec) -> dict[str, MiB]:
        dump = dump_of(disk)
        if dump.is_finished:
            return self.finished.get(dump.export, ("", {}))[1]
        return self.unfinished.get(dump.export, {})
