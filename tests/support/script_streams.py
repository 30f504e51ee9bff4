"""Scripts on two nodes, of which one exports what the other one imports: real, and faked."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from common.model.backing import Backing, DumpBacking, FileBacking, StreamBacking
from common.names import DiskId, InstanceName, MiB, NodeName
from common.noderpc.copies import Compression, Peer
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
from tests.support.contents import Contents
from tests.support.disks import WEB1, file_disk
from tests.support.https_node import LOCALHOST, TestCluster, run
from tests.support.os_definition import write_definition, write_script
from tests.support.script_rigs import ended

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
        self.wires.mib_per_s = self.wires.bridge.mib_per_s = 0.01

    def let_go(self) -> None:
        self.wires.mib_per_s = self.wires.bridge.mib_per_s = 2

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
            self.nodes[name] = self.reals[name] = RealNode(
                name, self.root / name, self.cluster, self.root / "os"
            )

    def break_off(self) -> None:
        found = self.reals[BETA].copier._home(COPY, "fetch").process()
        assert found is not None
        with found:
            found.signal(signal.SIGKILL)


Story = Callable[[Rig], Awaitable[None]]
Tell = Callable[[Story], None]


async def played(rig: Rig, story: Story, *, is_filled: bool = False) -> None:
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

    run(played(rig, story, is_filled=True), limit_s=60)


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
