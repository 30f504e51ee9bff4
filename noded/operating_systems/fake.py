"""Scripts that only pretend: what they write is a word, after a while."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from common.errors import NodeFailure, NotFound
from common.model.os_name import read_os_name
from common.names import DiskId
from common.noderpc.disks import DiskSpec
from common.noderpc.operating_systems import DefinitionReport, Script, ScriptOrder, ScriptReport
from noded.copies.fake_between import Contents
from noded.operating_systems.check import check_fits, check_order
from noded.operating_systems.definition import Definition, find_definition, report_of
from noded.operating_systems.fake_streams import DUMP, FakeStreams
from noded.operating_systems.interface import OsDriver
from noded.storage.storages import Storages

TAKES_S = 1.5

_ALL = {script: (f"/srv/os/debian/{script}",) for script in Script}
DEBIAN = Definition(
    name="debian",
    path="/srv/os/debian",
    api_versions=(15, 20),
    scripts=_ALL,
    variants=("stable", "testing"),
    parameters=(("mirror", "where packages are"), ("root_password", "of the guest")),
)
NOOP = Definition(
    name="noop",
    path="/srv/os/noop",
    api_versions=(10,),
    scripts={Script.CREATE: ("/srv/os/noop/create",)},
)


@dataclass
class _Run:
    order: ScriptOrder
    begun_at: float
    has_ended: bool = False
    problem: str = ""


class FakeOsDriver(OsDriver):
    """One machine's scripts. Like processes they go on without noded, and end with the power."""

    def __init__(
        self,
        storages: Storages,
        contents: Contents,
        *,
        streams: FakeStreams | None = None,
        is_in_use: Callable[[DiskId], bool] = lambda _: False,
    ) -> None:
        """Write to ``contents``; ``is_in_use`` tells whether somebody else has a disk open."""
        self._streams = streams or FakeStreams()
        self._streams.ending_of = self._ending
        self._storages, self._contents, self._is_in_use = storages, contents, is_in_use
        self._runs: dict[str, _Run] = {}
        # For scenarios to change:
        self.there: tuple[Definition, ...] = (DEBIAN, NOOP)
        self.failing: set[Script] = set()
        self.is_chatty = False  # scripts say something whenever they are looked at, and never end
        self.watch: Callable[[ScriptOrder], None] = lambda _: None  # hears what is checked and run

    def uses(self, disk: DiskId) -> bool:
        """Tell whether a script has a disk of this machine open."""
        active = (run for run in self._runs.values() if not run.has_ended)
        return any(disk == each.id for run in active for each in _used(run.order))

    def power_off(self) -> None:
        self._runs.clear()
        self._streams.waiting.clear()

    def settle(self) -> None:
        """Bring all that is run up to now."""
        for name, run in self._runs.items():
            self._settle(name, run)

    @property
    def known(self) -> tuple[str, ...]:
        """The runs of which something is left, for tests to look at."""
        return tuple(sorted(self._runs))

    async def definitions(self) -> tuple[DefinitionReport, ...]:
        return tuple(sorted(map(report_of, self.there), key=lambda report: report.name))

    async def check(self, order: ScriptOrder) -> None:
        check_order(order)
        self.watch(order)
        check_fits(
            order, find_definition(read_os_name(order.subject.os).definition, (), self.there)
        )

    async def begin(self, run: str, order: ScriptOrder) -> None:
        self.settle()
        if run in self._runs:
            return
        await self.check(order)
        for disk in order.subject.disks:
            self._storages.open(disk)
        for disk in _used(order):
            if self.uses(disk.id) or self._is_in_use(disk.id):
                path = disk.backing.where
                raise NodeFailure(
                    f"The disk {path} is in use by a guest, a copy, or a script of an operating "
                    "system.",
                    path=path,
                )
        self._runs = {
            name: each
            for name, each in self._runs.items()
            if each.order.subject.id != order.subject.id
            or not each.has_ended
            or (order.disk is not None and each.order.script is order.script)
        }
        self._runs[run] = _Run(order, _now())
        if order.disk is not None:
            self._streams.wait(run, self._written_by(order, order.subject.disks[order.disk]))

    async def look(self, run: str, offset: int) -> ScriptReport:
        if run not in self._runs:
            raise NotFound(
                "This node knows of no such script: none was started, or the node has lost its "
                "power since.",
                run=run,
            )
        found = self._runs[run]
        if self.is_chatty:
            return ScriptReport(text="and on\n", offset=offset + 7)
        self._settle(run, found)
        said = f"{found.order.script} of {found.order.subject.os}\n"[offset:]
        return ScriptReport(
            text=said, offset=offset + len(said), has_ended=found.has_ended and not said,
            problem="" if said else found.problem, log="/var/log/gantry/os/pretended.log",
        )  # fmt: skip

    async def end(self, run: str) -> None:
        if found := self._runs.pop(run, None):
            self._settle(run, found)
            if not found.has_ended:
                self._write(run, found, "a part of ")
        self._streams.waiting.pop(run, None)

    def _ending(self, name: str) -> str | None:
        run = self._runs.get(name)
        if run is None:
            return "was killed"
        self._settle(name, run)
        return run.problem if run.has_ended else None

    def _settle(self, name: str, run: _Run) -> None:
        if run.has_ended or _now() < run.begun_at + TAKES_S or not self._streams.is_done(name):
            return
        run.has_ended = True
        about = f"{run.order.script} of {run.order.subject.os} for {run.order.subject.name}"
        if run.order.script in self.failing:
            run.problem = f"The script {about} ended with status 1. It said last: no mirror"
            self._write(name, run, "a part of ")
        else:
            self._write(name, run, "")

    def _write(self, name: str, run: _Run, how_much: str) -> None:
        subject = run.order.subject
        word = f"{subject.os} for {subject.name}"
        if run.order.script is Script.EXPORT:
            return
        if run.order.script is Script.IMPORT:
            word = self._streams.waiting[name].word.removeprefix(DUMP)
        for disk in _used(run.order):
            self._contents.write(disk, f"{how_much}{word}" if word else "")

    def _written_by(self, order: ScriptOrder, disk: DiskSpec) -> str | None:
        """Return what a script writes to its stream; None: it reads that."""
        if order.script is Script.IMPORT:
            return None
        how_much = "a part of " if order.script in self.failing else ""
        return f"{how_much}{DUMP}{self._contents.read(disk)}"


def _used(order: ScriptOrder) -> tuple[DiskSpec, ...]:
    disks = order.subject.disks
    return disks if order.disk is None else (disks[order.disk],)


def _now() -> float:
    return asyncio.get_running_loop().time()
