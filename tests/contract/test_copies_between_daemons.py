"""A disk that one running daemon offers and another fetches, or brings to another cluster."""

import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from common.model.backing import FileBacking
from common.model.node import Node as NodeObject
from common.names import GroupId, NodeId, NodeName, TaskId
from common.noderpc.copies import Compression, Copies, Offer, Peer, Stranger
from common.noderpc.disks import Access, Disks, DiskSpec
from common.noderpc.files import Files
from common.noderpc.identity import Identity
from common.noderpc.tasks import Tasks, TaskState, TaskStatus
from common.paths import Paths
from common.rpc.declare import NodeService
from common.tls.token import JoinToken, read_token
from coordinator.nodes.calls import Nodes
from noded.copies.chunks import CHUNK
from noded.storage.directories import SSCONF_FILE_DIRECTORY
from tests.contract.test_noded_process import Process, start
from tests.support.disks import file_disk
from tests.support.https_node import LOCALHOST, TestCluster, run

S = TypeVar("S", bound=NodeService)

SIZE = 24  # MiB
NODES = ("beta", "gamma")
COPY = "4711-copy-0"
DISK = file_disk("dddddddd-0000-4000-8000-00000000000a", "", size=SIZE)


@dataclass
class Daemon:
    """A noded on this machine; its port is another one each time it is started."""

    name: str
    root: Path
    port: int = 0
    process: Process | None = None

    @property
    def token(self) -> JoinToken:
        return read_token(Paths(str(self.root)).join_token.read_text())

    def as_object(self, name: str) -> NodeObject:
        return NodeObject(
            uuid=NodeId(name), name=NodeName(name), primary_ip=LOCALHOST, port=self.port,
            group=GroupId("default"),
        )  # fmt: skip

    @property
    def path(self) -> Path:
        return self.root / "files" / "disk"

    @property
    def copies(self) -> list[str]:
        return [path.name for path in (self.root / "run/gantry/copies").iterdir()]

    async def start(self) -> None:
        self.process = await start(self.root, "--address", LOCALHOST, "--port", "0", "--no-mlock")
        assert self.process.stdout
        line = (await self.process.stdout.readline()).decode()
        self.port = int(re.findall(r"port (\d+)", line)[0])

    async def kill(self) -> None:
        assert self.process
        self.process.send_signal(signal.SIGKILL)
        await self.process.communicate()


@asynccontextmanager
async def two_daemons(root: Path, cluster: TestCluster) -> AsyncIterator[tuple[Daemon, Daemon]]:
    """Give two members of a cluster, each with a directory for disks."""
    async with AsyncExitStack() as stack:
        beta, gamma = [await joined(stack, root / name, cluster, name) for name in NODES]
        yield beta, gamma


async def joined(stack: AsyncExitStack, root: Path, cluster: TestCluster, name: str) -> Daemon:
    daemon = Daemon(name, root)
    (daemon.root / "files").mkdir(parents=True)
    await daemon.start()
    stack.push_async_callback(daemon.kill)
    await cluster.join(daemon, name)
    return daemon


def test_a_copy_survives_the_death_of_both_daemons(tmp_path: Path) -> None:
    cluster = TestCluster(tmp_path / "identities", candidates=("alpha",))

    async def scenario() -> None:
        async with two_daemons(tmp_path, cluster) as daemons, cluster.caller("alpha") as nodes:
            source, target = daemons
            for daemon in daemons:
                await prepare(nodes, daemon)
            with source.path.open("r+b") as file:
                file.write(os.urandom(10 * CHUNK))
            await begin(nodes, source, target, "first")
            await part_of_it(nodes, target, "first")
            for daemon in daemons:
                await daemon.kill()
                await daemon.start()
            await begin(nodes, source, target, "second")
            while (status := await watch(nodes, target, "second")).state is TaskState.RUNNING:
                pass
            assert status.state is TaskState.DONE, status
            assert target.path.read_bytes() == source.path.read_bytes()
            for daemon in daemons:
                await call(nodes, daemon, Copies).ensure_ended(copy=COPY)
                await call(nodes, daemon, Disks).ensure_absent(disk=disk_of(daemon))
                assert daemon.copies == []

    run(scenario())


def test_a_disk_goes_to_another_cluster_though_both_daemons_die(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            sides = []
            for name in NODES:
                cluster = TestCluster(tmp_path / f"identities-{name}", candidates=("alpha",))
                daemon = await joined(stack, tmp_path / name, cluster, name)
                nodes = await stack.enter_async_context(cluster.caller("alpha"))
                await prepare(nodes, daemon)
                who = await call(nodes, daemon, Identity).who()
                stranger = Stranger(name=NodeName(name), certificate=who.certificate)
                sides.append(Side(daemon, nodes, stranger))
            source, target = sides
            with source.daemon.path.open("r+b") as file:
                file.write(os.urandom(10 * CHUNK))
            offer = await send(source, target, "first")
            await part_of_it(target.nodes, target.daemon, "first")
            for side in sides:
                await side.daemon.kill()
                await side.daemon.start()
            assert await send(source, target, "second") == offer
            for side in sides:
                while (status := await side.watch("second")).state is TaskState.RUNNING:
                    pass
                assert status.state is TaskState.DONE, status
            assert target.daemon.path.read_bytes() == source.daemon.path.read_bytes()
            for side in sides:
                await call(side.nodes, side.daemon, Copies).ensure_ended(copy=COPY)
                assert side.daemon.copies == []

    run(scenario())


class Side(NamedTuple):
    """A node of one of two clusters, and who gives it orders."""

    daemon: Daemon
    nodes: Nodes
    stranger: Stranger

    async def watch(self, task: str) -> TaskStatus:
        return await watch(self.nodes, self.daemon, task)


async def send(source: Side, target: Side, task: str) -> Offer:
    """Have one side expect a disk, and the other bring it, slowly; or go on with that."""
    offer = await call(target.nodes, target.daemon, Copies).begin_expect(
        copy=COPY, disk=disk_of(target.daemon), peer=source.stranger, wait_s=60.0,
        task=TaskId(task),
    )  # fmt: skip
    await call(source.nodes, source.daemon, Copies).begin_send(
        copy=COPY, disk=disk_of(source.daemon), peer=target.stranger, host=LOCALHOST,
        offer=offer, compression=Compression.NONE, rate=4, task=TaskId(task),
    )  # fmt: skip
    return offer


def disk_of(daemon: Daemon) -> DiskSpec:
    return replace(DISK, backing=FileBacking(path=str(daemon.path), shared=False))


def call(nodes: Nodes, daemon: Daemon, kind: type[S]) -> S:
    return nodes.service(kind, daemon.as_object(daemon.name))


async def prepare(nodes: Nodes, daemon: Daemon) -> None:
    directory = f"{daemon.root}/files\n"
    await call(nodes, daemon, Files).publish(files={SSCONF_FILE_DIRECTORY: directory})
    await call(nodes, daemon, Disks).ensure_present(disk=disk_of(daemon))
    await call(nodes, daemon, Disks).attach(disks=(disk_of(daemon),), access=Access.SOLE)


async def begin(nodes: Nodes, source: Daemon, target: Daemon, task: str) -> None:
    """Begin a copy, slowly, or go on with it."""
    offer = await call(nodes, source, Copies).offer(
        copy=COPY, disk=disk_of(source), peer=Peer(name=NodeName(target.name)),
        compression=Compression.NONE, rate=4,
    )  # fmt: skip
    await call(nodes, target, Copies).begin_fetch(
        copy=COPY, disk=disk_of(target), peer=Peer(name=NodeName(source.name)), host=LOCALHOST,
        offer=offer, task=TaskId(task),
    )  # fmt: skip


async def watch(nodes: Nodes, daemon: Daemon, task: str, seen: str = "") -> TaskStatus:
    return await call(nodes, daemon, Tasks).watch(task=TaskId(task), seen=seen, wait_s=0.2)


async def part_of_it(nodes: Nodes, daemon: Daemon, task: str) -> None:
    seen = ""
    while True:
        status = await watch(nodes, daemon, task, seen)
        assert status.state is TaskState.RUNNING, status
        if status.share:
            return
        seen = status.message
