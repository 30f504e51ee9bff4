"""What scripts that export and import promise, kept by real processes and by the fakes.

alpha has a disk and exports it to a dump of beta's, which imports that onto a disk of its own.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

import pytest

from common.errors import NodeFailure, NotFound
from common.model.disk import Backing, DumpBacking, FileBacking, StreamBacking
from common.names import DiskId, InstanceName, MiB, NodeName
from common.noderpc.copies import BrokenOff, Compression, Peer
from common.noderpc.disks import Access, DiskSpec
from common.noderpc.operating_systems import Script, ScriptOrder, ScriptReport, Subject
from noded.copies.driver import ProcessCopier
from noded.copies.fake import FakeCopier, FakeWires
from noded.copies.interface import Copier, Fetched
from noded.exports.directory import ExportDirectory
from noded.exports.fake import FakeExports
from noded.exports.interface import ExportStore
from noded.operating_systems.driver import Places, ProcessOsDriver
from noded.operating_systems.fake import FakeOsDriver
from noded.operating_systems.interface import OsDriver
from noded.operating_systems.streams import Streams
from noded.storage.directories import Directories
from noded.storage.fake import FakeFiles, FakeStorage
from noded.storage.file import FileStorage
from noded.storage.interface import Storage
from noded.storage.lvm.fake import FakeVolumes
from noded.storage.storages import Storages
from tests.contract.test_os_scripts import ended
from tests.support.clock import simulate
from tests.support.contents import Contents
from tests.support.disks import WEB1, file_disk
from tests.support.https_node import LOCALHOST, TestCluster, run
from tests.support.os_definition import write_definition, write_script

ALPHA, BETA = "alpha", "beta"
ADDRESSES = {ALPHA: "192.0.2.1", BETA: "192.0.2.2"}
RUN, COPY, OTHER = "7-0-script-0", "7-0-copy-0", "8-0-copy-0"
SIZE = 3  # MiB
HEAD = b"#dump\n"
# Not as large as the disk, not of whole chunks, and told from what is on the disk.
EXPORT = (
    "printf '#dump\\n' && echo reading $EXPORT_INDEX >&2 && gzip -c $EXPORT_DEVICE | "
    "(head -c 1500000; until [ -e {root}/go ]; do sleep 0.05; done; cat)"
)
IMPORT = "head -c 6 > /dev/null; gzip -dc | dd of=$IMPORT_DEVICE conv=notrunc status=none"


class Node(Protocol):
    """What one node has; ``disk`` is of the instance."""

    @property
    def copier(self) -> Copier: ...
    @property
    def systems(self) -> OsDriver: ...
    @property
    def storage(self) -> Storage: ...
    @property
    def exports(self) -> ExportStore: ...
    @property
    def disk(self) -> DiskSpec: ...


class Rig(Protocol):
    nodes: dict[str, Node]

    def peer(self, node: str) -> Peer: ...
    def host(self, node: str) -> str: ...
    def fill(self) -> None: ...
    def is_filled(self) -> bool: ...
    def script(self, script: Script, *, fails: bool) -> None: ...
    def hold(self) -> None: ...
    def let_go(self) -> None: ...
    def restart_noded(self) -> None: ...
    def break_off(self) -> None: ...


class FakeNode:
    def __init__(self, name: str, wires: FakeWires) -> None:
        directories = Directories(local="/srv/local")
        self.storage = FakeStorage(lambda: directories, local=FakeFiles(), shared=FakeFiles())
        self.exports = FakeExports()
        nothing = FakeStorage(lambda: directories, local=FakeFiles(), shared=FakeFiles())
        self.written = Contents(self.storage, FakeVolumes("vg"), self.exports, nothing, [])
        by_backing: dict[type[Backing], Storage] = {
            FileBacking: self.storage, DumpBacking: self.exports,
            StreamBacking: self.written.streams,
        }  # fmt: skip
        storages = Storages(by_backing, {})
        self.copier = FakeCopier(
            name, ADDRESSES[name], wires, storages=storages, contents=self.written
        )
        self.systems = FakeOsDriver(storages, self.written, streams=self.written.streams)
        self.disk = file_disk(DiskId(WEB1.replace("1", name[0])), "/srv/local/disk", size=SIZE)


class FakeRig:
    def __init__(self) -> None:
        self.wires = FakeWires(mib_per_s=2)
        self.fakes = {name: FakeNode(name, self.wires) for name in ADDRESSES}
        self.nodes: dict[str, Node] = {**self.fakes}

    def peer(self, node: str) -> Peer:
        return Peer(name=NodeName(node))

    def host(self, node: str) -> str:
        return ADDRESSES[node]

    def fill(self) -> None:
        self.fakes[ALPHA].written.write(self.fakes[ALPHA].disk, "data")

    def is_filled(self) -> bool:
        return self.fakes[BETA].written.read(self.fakes[BETA].disk) == "data"

    def script(self, script: Script, *, fails: bool) -> None:
        for node in self.fakes.values():
            (node.systems.failing.add if fails else node.systems.failing.discard)(script)

    def hold(self) -> None:
        """Have a script that exports stop in the middle."""
        self.wires.mib_per_s = 0.01

    def let_go(self) -> None:
        self.wires.mib_per_s = 2

    def restart_noded(self) -> None:
        pass

    def break_off(self) -> None:
        self.wires.reaches = lambda _source, _target: False
        self.fakes[BETA].copier.settle()
        self.wires.reaches = lambda _source, _target: True


class RealNode:
    def __init__(
        self, name: str, root: Path, cluster: TestCluster, definitions: Path, size: int = SIZE
    ) -> None:
        (root / "disks").mkdir(parents=True, exist_ok=True)
        directories = Directories(local=str(root / "disks"))
        self.storage = FileStorage(lambda: directories)
        self.exports = ExportDirectory(root / "export")
        self.disk = file_disk(DiskId(WEB1.replace("1", name[0])), f"{root}/disks/disk", size=size)
        runs = root / "run"
        storages = Storages(
            {FileBacking: self.storage, DumpBacking: self.exports, StreamBacking: Streams(runs)},
            {},
        )
        places = Places(search_path=(definitions,), runs=runs, logs=root / "logs")
        self.copier = ProcessCopier(
            root / "copies", identity=cluster.identity(name), address=LOCALHOST,
            open_disk=storages.open,
        )  # fmt: skip
        self.systems = ProcessOsDriver(places, storages.open)


class RealRig:
    def __init__(self, root: Path, cluster: TestCluster) -> None:
        self.root, self.cluster = root, cluster
        (root / "go").touch()
        write_definition(root / "os/debian")
        self.script(Script.EXPORT, fails=False)
        self.script(Script.IMPORT, fails=False)
        self.reals = {name: RealNode(name, root / name, cluster, root / "os") for name in ADDRESSES}
        self.nodes: dict[str, Node] = {**self.reals}

    def peer(self, node: str) -> Peer:
        return Peer(name=NodeName(node), key=self.cluster.key(node))

    def host(self, node: str) -> str:
        return LOCALHOST

    def path(self, node: str) -> Path:
        return self.root / node / "disks/disk"

    def fill(self) -> None:
        with self.path(ALPHA).open("r+b") as file:
            file.write(os.urandom((2 << 20) + 4711))

    def is_filled(self) -> bool:
        dump = (self.root / BETA / "export/web1/dump").read_bytes()
        assert dump.startswith(HEAD)
        assert len(dump) != SIZE << 20
        return self.path(ALPHA).read_bytes() == self.path(BETA).read_bytes()

    def script(self, script: Script, *, fails: bool) -> None:
        text = EXPORT.format(root=self.root) if script is Script.EXPORT else IMPORT
        end = "; echo no mirror >&2; exit 1" if fails else ""
        write_script(self.root / "os/debian", script, f"set -o pipefail; {text}{end}")

    def hold(self) -> None:
        (self.root / "go").unlink()

    def let_go(self) -> None:
        (self.root / "go").touch()

    def restart_noded(self) -> None:
        for name in self.reals:
            shelf = self.root / name / "disks"
            shelf.rename(kept := self.root / name / "kept")
            self.nodes[name] = self.reals[name] = RealNode(
                name, self.root / name, self.cluster, self.root / "os"
            )
            shelf.rmdir()
            kept.rename(shelf)

    def break_off(self) -> None:
        found = self.reals[BETA].copier._home(COPY, "fetch").process()
        assert found is not None
        with found:
            found.signal(signal.SIGKILL)


Story = Callable[[Rig], Awaitable[None]]
Tell = Callable[[Story], None]


@pytest.fixture(params=["fake", "processes"])
def tell(request: pytest.FixtureRequest, tmp_path: Path) -> Tell:
    """Return what runs a story on two nodes that have a disk each."""
    if request.param == "fake":
        return lambda story: simulate(_told(FakeRig(), story))
    if os.geteuid() != 0:
        pytest.skip("scripts get names of processes of their own, for which it takes root")
    return lambda story: run(_told(RealRig(tmp_path, TestCluster(tmp_path / "identities")), story))


async def _told(rig: Rig, story: Story, *, is_filled: bool = False) -> None:
    for node in rig.nodes.values():
        await node.storage.ensure_present(node.disk)
        await node.storage.attach(node.disk, Access.SOLE)
    await rig.nodes[BETA].exports.ensure_present(dump())
    if not is_filled:
        rig.fill()
    try:
        await story(rig)
    finally:
        for node in rig.nodes.values():
            await node.systems.end(RUN)
            for copy in (COPY, OTHER):
                await node.copier.end(copy)


def move_by(os: str, definitions: Path, root: Path) -> None:
    """Have definitions export the disk of alpha, and import it on a larger one of beta."""
    rig = RealRig(root, cluster := TestCluster(root / "identities"))
    for name, size in ((ALPHA, 8), (BETA, 12)):
        rig.nodes[name] = RealNode(name, root / name, cluster, definitions, size)

    async def story(rig: Rig) -> None:
        assert (await exported(rig, os)).problem == ""
        await begin_import(rig, os)
        await fetched(rig, OTHER)
        _, report = await ended(rig.nodes[BETA].systems, RUN)
        assert report.problem == ""

    run(_told(rig, story, is_filled=True), limit_s=60)


def dump(*, is_finished: bool = False) -> DiskSpec:
    backing = DumpBacking(export="web1", name="dump", is_finished=is_finished)
    return DiskSpec(id=DiskId(WEB1.replace("1", "d")), instance=WEB1, size=MiB(1), backing=backing)


def stream() -> DiskSpec:
    backing = StreamBacking(run=RUN)
    return DiskSpec(id=DiskId(WEB1.replace("1", "e")), instance=WEB1, size=MiB(1), backing=backing)


def order(rig: Rig, node: str, script: Script, os: str = "debian+stable") -> ScriptOrder:
    subject = Subject(
        id=WEB1, name=InstanceName("web1"), os=os, primary_node=NodeName(node),
        ctime=1.5, mtime=2.5, hypervisor="kvm", disks=(rig.nodes[node].disk,),
    )  # fmt: skip
    return ScriptOrder(script=script, subject=subject, disk=0)


async def begin(
    rig: Rig, source: str, disk: DiskSpec, target: DiskSpec, *, copy: str = COPY
) -> None:
    """Begin a copy from ``source`` to beta."""
    offer = await rig.nodes[source].copier.offer(copy, disk, rig.peer(BETA), Compression.FAST, 0)
    await rig.nodes[BETA].copier.fetch(copy, target, rig.peer(source), rig.host(source), offer)


async def begin_export(rig: Rig, os: str = "debian+stable") -> None:
    await rig.nodes[ALPHA].systems.begin(RUN, order(rig, ALPHA, Script.EXPORT, os))
    await begin(rig, ALPHA, stream(), dump())


async def exported(rig: Rig, os: str = "debian+stable") -> ScriptReport:
    """Export the disk of alpha, and finish the export on beta."""
    await begin_export(rig, os)
    await fetched(rig)
    _, report = await ended(rig.nodes[ALPHA].systems, RUN)
    await rig.nodes[ALPHA].systems.end(RUN)
    await rig.nodes[ALPHA].copier.end(COPY)
    await rig.nodes[BETA].copier.end(COPY)
    await rig.nodes[BETA].exports.finish("web1", "[export]\n")
    return report


async def begin_import(rig: Rig, os: str = "debian+stable") -> None:
    await rig.nodes[BETA].systems.begin(RUN, order(rig, BETA, Script.IMPORT, os))
    await begin(rig, BETA, dump(is_finished=True), stream(), copy=OTHER)


async def fetched(rig: Rig, copy: str = COPY) -> None:
    await seen(rig, lambda now: now.has_ended, copy)


async def seen(rig: Rig, is_it: Callable[[Fetched], object], copy: str = COPY) -> None:
    """Return when a copy is as far as wanted."""
    while True:
        if is_it(await rig.nodes[BETA].copier.look(copy)):
            return
        await asyncio.sleep(0.02)


def test_what_a_script_has_exported_is_what_the_other_one_imports(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        report = await exported(rig)
        assert report.problem == ""
        await begin_import(rig)
        await fetched(rig, OTHER)
        _, report = await ended(rig.nodes[BETA].systems, RUN)
        assert report.problem == ""
        assert rig.is_filled()

    tell(story)


def test_a_script_that_fails_says_so_whatever_it_has_written(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        rig.script(Script.EXPORT, fails=True)
        report = await exported(rig)
        assert "ended with status 1. It said last:" in report.problem
        assert "no mirror" in report.problem

    tell(story)


def test_both_go_on_while_noded_is_started_anew(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        rig.hold()
        await begin_export(rig)
        rig.restart_noded()
        rig.let_go()
        await fetched(rig)
        _, report = await ended(rig.nodes[ALPHA].systems, RUN)
        assert report.problem == ""

    tell(story)


def test_what_broke_off_is_not_taken_up_again_but_begun_anew(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        alpha, beta = rig.nodes[ALPHA], rig.nodes[BETA]
        rig.hold()
        await begin_export(rig)
        await seen(rig, lambda now: now.done)
        rig.break_off()
        with pytest.raises(BrokenOff):
            await fetched(rig)
        # The one who offers it is still there, and has nothing to offer any more.
        await begin(rig, ALPHA, stream(), dump())
        with pytest.raises(BrokenOff):
            await fetched(rig)
        await alpha.copier.end(COPY)
        with pytest.raises(NotFound, match="that happens once"):
            await begin(rig, ALPHA, stream(), dump())
        await alpha.systems.end(RUN)
        await beta.copier.end(COPY)
        rig.let_go()
        await exported(rig)
        await begin_import(rig)
        await fetched(rig, OTHER)
        await ended(beta.systems, RUN)
        assert rig.is_filled()

    tell(story)


def test_one_that_waits_for_the_other_side_is_ended(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        systems = rig.nodes[ALPHA].systems
        await systems.begin(RUN, order(rig, ALPHA, Script.EXPORT))
        await systems.end(RUN)
        with pytest.raises(NotFound):
            await systems.look(RUN, 0)
        with pytest.raises(NotFound):
            await begin(rig, ALPHA, stream(), dump())

    tell(story)


def test_how_much_a_script_expects_to_write_is_told_while_it_writes(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("scripts get names of processes of their own, for which it takes root")
    rig = RealRig(tmp_path, TestCluster(tmp_path / "identities"))
    says = "echo 3000000 >&$EXP_SIZE_FD; echo and more >&$EXP_SIZE_FD; echo told >&2"
    text = EXPORT.format(root=tmp_path)
    # A plain shell knows descriptors of one digit only.
    (tmp_path / "os/debian/export").write_text(f"#!/bin/sh\n{says}; {text}\n")

    async def story(rig: Rig) -> None:
        rig.hold()
        await begin_export(rig)
        await seen(rig, lambda now: now.expected == 3000000)
        rig.let_go()
        await fetched(rig)
        text, report = await ended(rig.nodes[ALPHA].systems, RUN)
        assert (report.problem, text.splitlines()[0]) == ("", "told")
        whole = await rig.nodes[BETA].copier.look(COPY)
        assert whole.total == whole.done >= 2 << 20, "what it was, whatever was expected"

    run(_told(rig, story))


def test_a_script_that_stops_reading_is_told_of(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("scripts get names of processes of their own, for which it takes root")
    rig = RealRig(tmp_path, TestCluster(tmp_path / "identities"))
    write_script(tmp_path / "os/debian", Script.IMPORT, "head -c 6 > /dev/null; exit 3")

    async def story(rig: Rig) -> None:
        await exported(rig)
        await begin_import(rig)
        with pytest.raises(NodeFailure, match="before it had read all"):
            await fetched(rig, OTHER)
        _, report = await ended(rig.nodes[BETA].systems, RUN)
        assert "ended with status 3" in report.problem

    run(_told(rig, story))


def test_what_a_script_wrote_is_never_put_onto_a_disk_as_it_is(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("scripts get names of processes of their own, for which it takes root")
    rig = RealRig(tmp_path, TestCluster(tmp_path / "identities"))

    async def story(rig: Rig) -> None:
        await rig.nodes[ALPHA].systems.begin(RUN, order(rig, ALPHA, Script.EXPORT))
        await begin(rig, ALPHA, stream(), rig.nodes[BETA].disk)
        with pytest.raises(NodeFailure, match="only one that imports can make the disk"):
            await fetched(rig)

    run(_told(rig, story))
    assert not any((tmp_path / "beta/disks/disk").read_bytes())
