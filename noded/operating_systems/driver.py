"""Scripts of operating systems, each run by a process of its own that outlives noded."""

import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from common.errors import NodeFailure, NotFound
from common.messages import to_json
from common.model.disk import Mode
from common.model.os_name import read_os_name
from common.noderpc.disks import DiskSpec
from common.noderpc.operating_systems import (
    WITH_STREAM,
    DefinitionReport,
    Script,
    ScriptOrder,
    ScriptReport,
)
from noded.copies.device import claim
from noded.images.contents import AS_QCOW2, layout_of
from noded.operating_systems.check import check_fits, check_order
from noded.operating_systems.definition import (
    Definition,
    find_definition,
    report_of,
    reports,
)
from noded.operating_systems.environment import environment
from noded.operating_systems.home import RESULT, Home, Run, read_lines
from noded.operating_systems.interface import OsDriver
from noded.operating_systems.leftovers import layers_on, release
from noded.operating_systems.logs import last_lines, log_path
from noded.operating_systems.masking import Mask
from noded.operating_systems.orders import Task
from noded.operating_systems.sandbox import path_of_disk, sandboxed
from noded.system.execute import TOLD_LIMIT, CommandFailed, execute
from noded.system.process import Process, start
from noded.system.threads import in_thread

MOST_TOLD = 32 << 10  # bytes of output in one answer
VERIFY_S = 60.0
STOP_WAIT_S = 20.0  # more than a script gets to clear up

OpenDisk = Callable[[DiskSpec], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where things of operating systems are on this node.

    Attributes:
        search_path: of definitions.
        runs: what is known of scripts under way; in memory.
        logs: what scripts have said.
        built_in: definitions that come with noded.
    """

    search_path: tuple[Path, ...]
    runs: Path
    logs: Path
    built_in: tuple[Definition, ...] = ()


class ProcessOsDriver(OsDriver):
    def __init__(self, places: Places, open_disk: OpenDisk) -> None:
        """Run what is found at ``places``; ``open_disk`` opens an attached disk."""
        self._places, self._open_disk = places, open_disk
        self._children: dict[Path, Process] = {}

    async def definitions(self) -> tuple[DefinitionReport, ...]:
        return await in_thread(self._reports)

    async def check(self, order: ScriptOrder) -> None:
        definition = await in_thread(self._find, order)
        verify = definition.scripts.get(Script.VERIFY)
        if not verify or order.script is not Script.CREATE:
            return
        with ExitStack() as ours:
            if not definition.is_trusted:
                self._places.runs.mkdir(parents=True, exist_ok=True)
                root = ours.enter_context(TemporaryDirectory(dir=self._places.runs))
                verify = sandboxed(verify, root=root, definition=definition.path, disks=())
            paths = [("", "")] * len(order.subject.disks)
            try:
                await execute(
                    *verify,
                    timeout_s=VERIFY_S,
                    environment=environment(order, definition, paths),
                    directory=definition.path or "/",
                )
            except CommandFailed as error:
                raise NodeFailure(
                    f"{order.subject.os} cannot be installed with these parameters: "
                    f"{_last_words(error, _secrets(order))}"
                ) from None  # what it has said has secrets in it

    async def begin(self, run: str, order: ScriptOrder) -> None:
        home = self._home(run)
        if home.exists and (self._runs(home) or home.result()):
            return
        definition = await in_thread(self._find, order)
        await self._reap(home)
        await in_thread(self._begin, home, order, definition)
        await self._forget_others(home, order)

    async def look(self, run: str, offset: int) -> ScriptReport:
        home = self._home(run)
        about = home.run()
        if about is None:
            raise NotFound(
                "This node knows of no such script: none was started, or the node has lost its "
                "power since.",
                run=run,
            )
        runs = self._runs(home)
        result = home.result()  # in this order: it may end in between
        has_ended = not runs
        text, offset = await in_thread(
            lambda: read_lines(Path(about.log), offset, MOST_TOLD, has_ended=has_ended)
        )
        if text or not has_ended:
            return ScriptReport(text=text, offset=offset, log=about.log)
        await self._reap(home)
        problem = ""
        if result is None:
            said = home.last_words()
            problem = f"The script {about.script} was killed.{f' {said}' if said else ''}"
        elif result.status:
            said = last_lines(Path(about.log))
            problem = f"The script {about.script} {result.ending}.{said}"
        return ScriptReport(offset=offset, has_ended=True, problem=problem, log=about.log)

    async def end(self, run: str) -> None:
        home = self._home(run)
        if child := self._children.get(home.directory):
            await child.stop(STOP_WAIT_S)
            await self._reap(home)
        elif found := home.process():
            with found:
                await found.stop(STOP_WAIT_S)
        if about := home.run():
            await release(about.disks, about.layers)
        await in_thread(home.remove)

    def _home(self, run: str) -> Home:
        return Home(self._places.runs / run)

    def _find(self, order: ScriptOrder) -> Definition:
        check_order(order)
        name = read_os_name(order.subject.os).definition
        found = find_definition(name, self._places.search_path, self._places.built_in)
        check_fits(order, found)
        return found

    def _begin(self, home: Home, order: ScriptOrder, definition: Definition) -> None:
        subject = order.subject
        with ExitStack() as ours:  # the process has copies of its own
            disks = [self._open(ours, disk) for disk in subject.disks]
            used = slice(None) if order.disk is None else slice(order.disk, order.disk + 1)
            for descriptor, disk in zip(disks[used], subject.disks[used], strict=True):
                claim(descriptor, disk.backing.where, to_write=True)
            home.remove()
            home.prepare()
            log = log_path(self._places.logs, order, time.time())
            places = [_place(each, of) for each, of in zip(disks, subject.disks, strict=True)]
            is_trusted = definition.is_trusted
            reached = used if is_trusted else slice(None)  # a sandbox has all of them
            paths = tuple(path for path, _ in places[reached])
            home.keep(
                Run(
                    script=_about(order),
                    instance=subject.id,
                    log=str(log),
                    disks=paths,
                    layers=layers_on(paths),
                )
            )
            stream = str(home.make_stream()) if order.script in WITH_STREAM else ""
            output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            ours.callback(os.close, output)
            own = [(path_of_disk(number), "block") for number in range(len(places))]
            told = environment(order, definition, places if is_trusted else own)
            task = Task(
                argv=definition.scripts[order.script],
                directory=definition.path or "/",
                environment=dict(told),
                secrets=_secrets(order),
                sandbox="" if is_trusted else home.make_sandbox(),
                turn=str(self._places.runs),
                paths=paths,
                disks=tuple(disks[reached]),
                log=output,
                reads=stream if order.script is Script.IMPORT else "",
                writes=stream if order.script is Script.EXPORT else "",
                estimate=home.make_estimate() if order.script is Script.EXPORT else "",
                ending=home.make_ending() if stream else "",
                result=str(home.directory / RESULT),
            )
            self._start(home, task, ours)

    def _open(self, ours: ExitStack, disk: DiskSpec) -> int:
        # Whatever a guest may do with it: what is installed has to be written.
        descriptor = self._open_disk(replace(disk, mode=Mode.READ_WRITE))
        ours.callback(os.close, descriptor)
        return descriptor

    def _start(self, home: Home, task: Task, ours: ExitStack) -> None:
        letter = os.memfd_create("task")
        ours.callback(os.close, letter)
        os.write(letter, to_json(task))
        program = (sys.executable, "-P", "-m", "noded.operating_systems.worker")
        argv = (*program, str(home.directory), str(letter))
        handed = (*task.disks, task.log, letter)
        self._children[home.directory] = started = start(argv, home.log, handed)
        home.note(started)

    def _runs(self, home: Home) -> bool:
        if child := self._children.get(home.directory):
            return not child.has_ended
        found = home.process()  # of a noded before
        if found is None:
            return False
        with found:
            return not found.has_ended

    async def _reap(self, home: Home) -> None:
        """Clear a child away that has ended."""
        if child := self._children.pop(home.directory, None):
            with child:
                await child.ended()

    async def _forget_others(self, home: Home, order: ScriptOrder) -> None:
        """Forget earlier runs for an instance, which nobody asks for any more.

        Of those that import or export one goes on for each disk, some longer than others.
        """
        beside = _about(order) if order.disk is not None else ""
        for directory in await in_thread(lambda: [*self._places.runs.iterdir()]):
            other = Home(directory)
            about = other.run() if directory != home.directory else None
            if about is None or about.instance != order.subject.id or about.script == beside:
                continue
            if not self._runs(other):
                await self.end(directory.name)

    def _reports(self) -> tuple[DefinitionReport, ...]:
        found = {each.name: each for each in reports(self._places.search_path)}
        own = {each.name: report_of(each) for each in self._places.built_in}
        return tuple(each for _, each in sorted((own | found).items()))


def _place(descriptor: int, disk: DiskSpec) -> tuple[str, str]:
    """Return where an open disk is, and what it is: what was checked is what is told."""
    path = str(Path(f"/proc/self/fd/{descriptor}").readlink())
    if layout_of(disk.backing).is_qcow2:
        return path, AS_QCOW2
    return path, "block" if path.startswith("/dev/") else "file:loop"


def _about(order: ScriptOrder) -> str:
    return f"{order.script} of {order.subject.os} for {order.subject.name}"


def _secrets(order: ScriptOrder) -> tuple[str, ...]:
    return tuple(order.parameters.get(name, "") for name in order.confidential)


def _last_words(error: CommandFailed, secrets: tuple[str, ...]) -> str:
    """Return why a script has failed, with nothing of ``secrets``."""
    said, status = error.detail.get("stderr", ""), error.detail.get("status")
    if len(said) >= TOLD_LIMIT:  # where it is cut there may be half of a secret
        said = said.partition("\n")[2]
    mask = Mask(secrets)
    told = (mask.hide(said.encode()) + mask.rest()).decode(errors="replace")
    if told and status is not None and status > 0:
        return told
    return f"{error.message.partition(' It said: ')[0]} {told}".rstrip()
