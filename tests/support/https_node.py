"""Real nodes behind real TLS on the loopback address, over fake drivers; and who calls them."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Protocol, TypeVar

import uvloop

from common.messages import to_builtins
from common.model.backing import FileBacking
from common.model.node import Node as NodeObject
from common.names import (
    ClusterId,
    ClusterName,
    DiskId,
    Epoch,
    GroupId,
    InstanceId,
    KeyId,
    MiB,
    NodeId,
    NodeName,
    Serial,
)
from common.noderpc.disks import DiskSpec
from common.noderpc.identity import Join, Membership
from common.noderpc.roster import Roster
from common.paths import Paths
from common.rpc.client import stub
from common.tls.authority import issue, make_authority
from common.tls.certificate import read_pem
from common.tls.context import AUTHORITY, CERTIFICATE, KEY, client_context
from common.tls.keys import KeyPair, make_key, make_request
from common.tls.token import JoinToken
from coordinator.nodes.calls import Nodes
from coordinator.nodes.connection import Connection
from coordinator.nodes.https import HttpsDial
from coordinator.nodes.stranger import stranger
from noded.daemon.node import Drivers, Node
from noded.daemon.server import Server
from noded.exports.fake import FakeExports
from noded.hooks.fake import FakeHooks
from noded.identity.keys import OwnKeyMaker
from noded.machine.fake import FakeMachine
from noded.network.fake import FakeNetwork
from noded.powercycle import PowerSwitch
from noded.programs.fake import FakePrograms
from noded.storage.directories import Directories
from noded.storage.fake import FakeFiles, FakeStorage
from tests.support.disks import idle_copier, idle_os_driver, only_files

T = TypeVar("T")

DISKS = Directories(local="/srv/local", shared="/srv/shared")
LOCALHOST = "127.0.0.1"
YEAR_S = 365 * 86_400.0
PATH = "/srv/shared/web1/disk0"
DISK = DiskSpec(
    id=DiskId("6f1c2f3e-0000-4000-8000-000000000001"),
    instance=InstanceId("6f1c2f3e-0000-4000-8000-000000000002"),
    size=MiB(64), backing=FileBacking(path=PATH, shared=True),
)  # fmt: skip
HEAD = b"PUT /mastership/vote HTTP/1.1\r\nHost: beta\r\nGantry-Epoch: 1\r\nGantry-Call: a\r\n"


def run(scenario: Coroutine[Any, Any, T], *, limit_s: float = 120.0) -> T:
    """Run ``scenario`` on the loop that noded uses, in real time."""

    async def limited() -> T:
        async with asyncio.timeout(limit_s):
            return await scenario

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(limited())


class FakeSwitch(PowerSwitch):
    """Remembers whether it was used."""

    def __init__(self) -> None:
        self.pressed = asyncio.Event()

    def check(self) -> None:
        pass

    def cycle(self) -> None:
        self.pressed.set()


@dataclass
class Served:
    """A node that answers on ``port``; its drivers are for the test to look at."""

    node: Node
    server: Server
    port: int
    paths: Paths
    power: FakeSwitch
    storage: FakeStorage

    @property
    def token(self) -> JoinToken:
        assert self.node.identity.token
        return self.node.identity.token

    def as_object(self, name: str) -> NodeObject:
        """Return the node as it stands in a configuration."""
        return NodeObject(
            uuid=NodeId(name), name=NodeName(name), primary_ip=LOCALHOST, port=self.port,
            group=GroupId("default"),
        )  # fmt: skip


@asynccontextmanager
async def served(root: Path) -> AsyncIterator[Served]:
    """Serve the node whose files are below ``root``, a member or not."""
    paths = Paths(str(root))
    paths.state.mkdir(parents=True, exist_ok=True)
    storage = FakeStorage(lambda: DISKS, local=FakeFiles(), shared=FakeFiles())
    power = FakeSwitch()
    node = Node(
        paths,
        Drivers(
            storages=only_files(storage), copier=idle_copier(storage), exports=FakeExports(),
            operating_systems=idle_os_driver(storage),
            hooks=FakeHooks(), programs=FakePrograms(), network=FakeNetwork("br0"),
            hypervisors={}, power=power,
            machine=FakeMachine("boot"), keys=OwnKeyMaker(), now=time.time,
        ),
    )  # fmt: skip
    listener = socket.create_server((LOCALHOST, 0))
    port = listener.getsockname()[1]
    server = Server(node, paths, listener)
    try:
        await node.start()
        await server.open()
        yield Served(node, server, port, paths, power, storage)
    finally:
        await server.close()
        await node.close()


class Joinable(Protocol):
    """A node of no cluster, in this process or another."""

    @property
    def token(self) -> JoinToken: ...

    def as_object(self, name: str) -> NodeObject: ...


@dataclass
class TestCluster:
    """An authority, and identities made with it below ``directory``."""

    __test__ = False  # pytest shall not take it for a test

    directory: Path
    name: ClusterName = ClusterName("one.example.com")
    candidates: tuple[str, ...] = ("alpha", "beta")
    authority: KeyPair = field(init=False)
    _keys: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.authority = make_authority(self.name, now=time.time())

    def issue(self, csr: str, node: str, *, age_s: float = 0.0, also: str | None = None) -> str:
        return issue(
            self.authority, csr, node=NodeName(node), addresses=(LOCALHOST,),
            now=time.time() - age_s, also=NodeName(also) if also else None,
        )  # fmt: skip

    def identity(self, node: str, *, age_s: float = 0.0) -> Path:
        """Return a directory with an identity that was issued ``age_s`` seconds ago.

        A node has one key, whatever the age of its certificate. Each is written once: a process
        may be reading it.
        """
        path = self.directory / f"{self.name}-{node}-{age_s}"
        if path.exists():
            return path
        path.mkdir(parents=True)
        key = self._keys.setdefault(node, make_key())
        csr = make_request(key, NodeName(node))
        certificate = self.issue(csr, node, age_s=age_s)
        for name, text in (
            (KEY, key), (CERTIFICATE, certificate), (AUTHORITY, self.authority.certificate),
        ):  # fmt: skip
            (path / name).write_text(text, encoding="ascii")
        return path

    def key(self, node: str) -> KeyId:
        """Return what is known of the key of a node."""
        return read_pem((self.identity(node) / CERTIFICATE).read_text()).key

    def roster(self, *candidates: str, serial: int = 0, epoch: int = 1) -> Roster:
        """Return a roster of these candidates."""
        return Roster(
            epoch=Epoch(epoch), serial=Serial(serial),
            candidates={NodeName(name): self.key(name) for name in candidates},
        )  # fmt: skip

    async def join(self, node: Joinable, name: str, **issued: Any) -> None:
        """Make ``node`` a member, as ``gnt-node add`` does."""
        join = stub(Join, stranger(node.as_object(name), node.token.fingerprint))
        token = node.token
        proof = token.prove("join.request", {"node": name})
        csr = (await join.request(node=NodeName(name), proof=proof)).csr
        membership = self.membership(name, self.issue(csr, name, **issued))
        proof = token.prove("join.accept", {"membership": to_builtins(membership)})
        await join.accept(membership=membership, proof=proof)

    def membership(self, name: str, certificate: str) -> Membership:
        return Membership(
            cluster=self.name, cluster_uuid=ClusterId("c"),
            node=NodeName(name), node_uuid=NodeId(name),
            authority=self.authority.certificate, certificate=certificate,
            roster=self.roster(*self.candidates),
            ssconf={"cluster_name": f"{self.name}\n"},
        )  # fmt: skip

    @asynccontextmanager
    async def caller(
        self, node: str = "alpha", *, epoch: int = 1, **identity: Any
    ) -> AsyncIterator[Nodes]:
        """Call nodes as ``node``, with connections of its own."""
        async with HttpsDial(client_context(self.identity(node, **identity))) as dial:
            yield Nodes(dial, Epoch(epoch), Random(epoch))


def beta(node: Served, nodes: Nodes, kind: type[Any]) -> Any:
    return nodes.service(kind, node.as_object("beta"))


def node_connections(nodes: Nodes) -> list[Connection]:
    assert isinstance(nodes.dial, HttpsDial)
    return [connection for idle in nodes.dial._idle.values() for connection in idle]
