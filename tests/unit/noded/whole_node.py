"""A whole node without sockets, in virtual time, and the calls to it."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common.messages import to_builtins, to_json
from common.names import (
    CallId,
    ClusterId,
    ClusterName,
    Epoch,
    InstanceId,
    InstanceName,
    KeyId,
    MiB,
    NodeId,
    NodeName,
)
from common.noderpc.identity import Membership, Request
from common.noderpc.instances import GuestSpec
from common.noderpc.roster import Roster
from common.paths import Paths
from common.rpc.envelope import Envelope, open_answer
from common.tls.authority import issue
from common.tls.context import Peer
from common.tls.keys import KeyPair
from noded.daemon.node import Drivers, Node
from noded.exports.fake import FakeExports
from noded.hooks.fake import FakeHooks
from noded.hypervisor.fake import FakeHypervisor
from noded.hypervisor.fake_world import FakeWorld
from noded.identity.keys import OwnKeyMaker
from noded.machine.fake import FakeMachine
from noded.network.fake import FakeNetwork
from noded.powercycle import NoSwitch, PowerSwitch
from noded.programs.fake import FakePrograms
from noded.storage.directories import Directories
from noded.storage.fake import FakeFiles, FakeStorage
from tests.support.disks import idle_copier, idle_os_driver, only_files

NOW = 1_800_000_000.0
ONE = ClusterName("one.example.com")
ALPHA = Peer(NodeName("alpha"), KeyId("a" * 64))
WEB1 = GuestSpec(
    id=InstanceId("6f1c2f3e-0000-4000-8000-000000000002"), name=InstanceName("web1"),
    hypervisor="kvm", memory=MiB(4096), vcpus=2,
    parameters={"kernel_path": "/boot/vmlinuz"},
)  # fmt: skip


@dataclass
class Rig:
    """A node, and the calls to it, by name."""

    root: Path
    authority: KeyPair
    power: PowerSwitch = field(default_factory=lambda: NoSwitch("It has no switch."))
    node: Node = field(init=False)
    storage: FakeStorage = field(init=False)
    calls: int = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Rig"]:
        paths = Paths(str(self.root))
        paths.state.mkdir(parents=True, exist_ok=True)
        directories = Directories(local="/srv/local", shared="/srv/shared")
        self.storage = FakeStorage(lambda: directories, local=FakeFiles(), shared=FakeFiles())
        self.node = Node(
            paths,
            Drivers(
                storages=only_files(self.storage), copier=idle_copier(self.storage),
                exports=FakeExports(), hooks=FakeHooks(), programs=FakePrograms(),
                operating_systems=idle_os_driver(self.storage), network=FakeNetwork(),
                machine=FakeMachine("boot"),
                hypervisors={"kvm": FakeHypervisor(FakeWorld(), "192.0.2.2")},
                power=self.power, keys=OwnKeyMaker(), now=lambda: NOW,
            ),
        )  # fmt: skip
        await self.node.start()
        try:
            yield self
        finally:
            await self.node.close()

    async def call(
        self, name: str, returns: Any = None, *, caller: Peer | None = ALPHA, epoch: int = 0,
        **arguments: Any,
    ) -> Any:  # fmt: skip
        self.calls += 1
        envelope = self.envelope(f"{self.calls}", epoch)
        service, _, method = name.partition(".")
        reply = await self.node.call(service, method, envelope, caller, to_json(arguments))
        return open_answer(reply.body, returns, what="the answer")

    def envelope(self, call: str, epoch: int = 0, patience_s: float = 10) -> Envelope:
        now = self.node.clock.read()
        return Envelope(
            epoch=Epoch(epoch), call=CallId(call),
            good_until=now._replace(at_s=now.at_s + patience_s),
        )  # fmt: skip

    async def join(self, name: str = "beta") -> None:
        token = self.node.identity.token
        assert token
        proof = token.prove("join.request", {"node": name})
        request = await self.call("join.request", Request, caller=None, node=name, proof=proof)
        certificate = issue(
            self.authority, request.csr, node=NodeName(name), addresses=(),
            now=time.time(),
        )  # fmt: skip
        membership = Membership(
            cluster=ONE, cluster_uuid=ClusterId("c"), node=NodeName(name), node_uuid=NodeId(name),
            authority=self.authority.certificate, certificate=certificate,
            roster=Roster(epoch=Epoch(1), candidates={ALPHA.node: ALPHA.key}),
        )  # fmt: skip
        told = to_builtins(membership)
        proof = token.prove("join.accept", {"membership": told})
        await self.call("join.accept", caller=None, membership=told, proof=proof)
