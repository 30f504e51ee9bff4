"""A whole node without sockets, in virtual time: as the simulated cluster uses it."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from common.errors import Conflict, Deposed, InvalidRequest, NodeFailure, NotFound
from common.messages import from_json, to_builtins, to_json
from common.model.commit import next_commit
from common.model.pool import Pool
from common.model.stamp import Stamp
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
    TaskId,
)
from common.noderpc.facts import StorageReport
from common.noderpc.identity import Membership, Request
from common.noderpc.instances import GuestSpec
from common.noderpc.mastership import Ballot
from common.noderpc.roster import Roster
from common.noderpc.tasks import TaskState, TaskStatus
from common.paths import Paths
from common.rpc.envelope import Envelope, open_answer
from common.tls.authority import issue, make_authority
from common.tls.context import Peer
from common.tls.keys import KeyPair
from noded.daemon.node import Drivers, Node
from noded.exports.fake import FakeExports
from noded.handlers.facts import STORAGE_PATIENCE_S, UNTIL_POWER_OFF_S
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
from tests.support.clock import simulate
from tests.support.disks import directory, idle_copier, idle_os_driver, only_files

NOW = 1_800_000_000.0
ONE = ClusterName("one.example.com")
ALPHA = Peer(NodeName("alpha"), KeyId("a" * 64))
WEB1 = GuestSpec(
    id=InstanceId("6f1c2f3e-0000-4000-8000-000000000002"), name=InstanceName("web1"),
    hypervisor="kvm", memory=MiB(4096), vcpus=2,
    parameters={"kernel_path": "/boot/vmlinuz"},
)  # fmt: skip


@pytest.fixture(scope="module")
def authority() -> KeyPair:
    return make_authority(ONE, now=time.time())


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


@pytest.fixture
def rig(tmp_path: Path, authority: KeyPair) -> Rig:
    return Rig(tmp_path, authority)


def test_a_node_joins_and_remembers_it(rig: Rig) -> None:
    async def scenario() -> None:
        async with rig.running():
            await rig.join()
            assert (await rig.call("facts.facts", dict))["name"] == "beta"
        async with rig.running():
            assert (await rig.call("facts.facts", dict))["name"] == "beta"

    simulate(scenario())


def test_a_token_is_used_once(rig: Rig) -> None:
    async def scenario() -> None:
        async with rig.running():
            await rig.join()
            with pytest.raises(Conflict, match=r"in the cluster one\.example\.com already"):
                await rig.call("join.request", caller=None, node="beta", proof="")

    simulate(scenario())


def test_a_name_that_is_none_is_refused(rig: Rig) -> None:
    async def scenario() -> None:
        async with rig.running():
            with pytest.raises(InvalidRequest, match="no node name"):
                await rig.join("Beta_!")

    simulate(scenario())


def test_what_nobody_declared_is_not_found(rig: Rig) -> None:
    async def scenario() -> None:
        async with rig.running():
            for name in ("facts.reboot", "start.", "facts.__init__", "."):
                with pytest.raises(NotFound, match="knows no call"):
                    await rig.call(name)

    simulate(scenario())


def test_a_member_that_lost_its_grant_goes_by_its_replica(rig: Rig) -> None:
    async def scenario() -> None:
        async with rig.running():
            await rig.join()
            await _grant(rig, 4, "alpha")
            commit = next_commit(Stamp(), Epoch(4), ())
            await rig.call("replica.append", Stamp, commits=(commit,), epoch=4)
        Paths(str(rig.root)).grants.unlink()
        async with rig.running():
            ballot = await rig.call("mastership.vote", Ballot)
            assert (ballot.master, ballot.epoch) == (None, 4)
            with pytest.raises(Deposed):
                await _grant(rig, 4, "gamma")
            with pytest.raises(Deposed, match="epoch 3 is over"):
                await rig.call("replica.append", Stamp, commits=(), epoch=3)

    simulate(scenario())


def test_a_ballot_tells_the_grant_and_that_there_is_no_state(rig: Rig) -> None:
    async def scenario() -> None:
        async with rig.running():
            await rig.join()
            await _grant(rig, 4, "alpha")
            ballot = await rig.call("mastership.vote", Ballot)
            assert ballot == Ballot(master=NodeName("alpha"), epoch=Epoch(4))
        async with rig.running():
            assert (await rig.call("mastership.vote", Ballot)).epoch == 4
            with pytest.raises(Deposed):
                await rig.call("disks.find", epoch=3, disks=[])

    simulate(scenario())


async def _grant(rig: Rig, epoch: int, master: str) -> None:
    body = to_json({"epoch": epoch, "master": master})
    reply = await rig.node.call("mastership", "grant", rig.envelope("grant"), ALPHA, body)
    open_answer(reply.body, None, what="the answer")


def test_an_epoch_begins_with_one_and_has_a_master(rig: Rig) -> None:
    async def scenario() -> None:
        async with rig.running():
            await rig.join()
            with pytest.raises(InvalidRequest, match="begin with 1"):
                await _grant(rig, 0, "alpha")
            with pytest.raises(InvalidRequest, match="no node name"):
                await _grant(rig, 1, "../alpha")

    simulate(scenario())


def test_an_order_goes_on_when_its_caller_hangs_up(rig: Rig) -> None:
    async def scenario() -> None:
        async with rig.running():
            await rig.join()
            starting = asyncio.ensure_future(
                rig.call("instances.ensure_running", guest=to_builtins(WEB1))
            )
            await asyncio.sleep(0.01)
            starting.cancel()
            await asyncio.sleep(100)
            assert len(await rig.call("instances.guests", list)) == 1

    simulate(scenario())


def test_promised_memory_counts_and_guests_keep_a_node_from_leaving(rig: Rig) -> None:
    async def scenario() -> None:
        async with rig.running():
            await rig.join()
            before = await rig.call("facts.facts", dict)
            assert before["memory_total"] == before["memory_free"] + before["memory_dom0"]
            assert before["hypervisors"] == {"kvm": "1.0"}
            assert before["clock"] == NOW
            await rig.call("instances.ensure_running", guest=to_builtins(WEB1))
            after = await rig.call("facts.facts", dict)
            assert after["memory_free"] == before["memory_free"] - WEB1.memory
            assert after["memory_dom0"] == before["memory_dom0"]
            with pytest.raises(Conflict, match="Guests are still on this node: web1"):
                await rig.call("identity.leave")
            await rig.call("instances.ensure_gone", instance=WEB1.id)
            await rig.call("identity.leave")
            assert rig.node.cluster is None
            await rig.join("gamma")

    simulate(scenario())


def test_storage_that_hangs_does_not_hide_the_facts_and_is_asked_once(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def hang(pool: Pool) -> StorageReport:
        asked.append(pool.name)
        if pool.name == "/srv/shared":
            await asyncio.sleep(10_000)
        return StorageReport(pool=pool, total=MiB(9), free=MiB(5), usable=True)

    async def scenario() -> None:
        async with rig.running():
            await rig.join()
            monkeypatch.setattr(rig.storage, "space", hang)
            loop = asyncio.get_running_loop()
            for attempt in (1, 2):
                pools = [directory("/srv/local"), directory("/srv/shared")]
                facts = await rig.call("facts.facts", dict, storage=pools)
                assert loop.time() == attempt * STORAGE_PATIENCE_S
                local, shared = facts["storage"]
                assert local["usable"]
                assert "did not answer within 5 s" in shared["problem"]
                assert not shared["usable"]
            assert asked.count("/srv/shared") == 1

    simulate(scenario())


def test_powercycle_answers_first_and_a_node_without_a_switch_says_why(rig: Rig) -> None:
    class Switch(PowerSwitch):
        pressed_at: float | None = None

        def check(self) -> None:
            pass

        def cycle(self) -> None:
            self.pressed_at = asyncio.get_running_loop().time()

    async def scenario() -> None:
        async with rig.running():
            await rig.join()
            with pytest.raises(NodeFailure, match="It has no switch"):
                await rig.call("facts.powercycle")
        rig.power = switch = Switch()
        async with rig.running():
            await rig.call("facts.powercycle")
            assert switch.pressed_at is None
            await asyncio.sleep(1)
            assert switch.pressed_at == UNTIL_POWER_OFF_S

    simulate(scenario())


def test_a_watcher_of_the_old_master_does_not_hold_up_the_new(rig: Rig) -> None:
    async def scenario() -> None:
        async with rig.running():
            await rig.join()
            await rig.call("instances.ensure_running", guest=to_builtins(WEB1))
            task = TaskId("t")
            await rig.call("instances.begin_shutdown", instance=WEB1.id, wait_s=100.0, task=task)
            first = await rig.call("tasks.watch", TaskStatus, task=task, seen="", wait_s=30.0)
            watching = asyncio.ensure_future(
                rig.call("tasks.watch", TaskStatus, task=task, seen=first.message, wait_s=30.0)
            )
            await asyncio.sleep(0)
            begun = asyncio.get_running_loop().time()
            await _grant(rig, 1, "gamma")
            assert asyncio.get_running_loop().time() == begun
            assert (await watching).state is TaskState.DONE  # it outlives its coordinator

    simulate(scenario())


def test_broken_json_in_an_answer_never_happens(rig: Rig) -> None:
    async def scenario() -> None:
        async with rig.running():
            envelope = Envelope(epoch=Epoch(0), call=CallId("a"))
            for body in (b"", b"\xff", b"{", b"[]", b"null", b'"x"'):
                reply = await rig.node.call("join", "request", envelope, None, body)
                assert reply.status == 400
                from_json(reply.body, dict, what="the answer")

    simulate(scenario())
