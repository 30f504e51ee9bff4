"""A small cluster to ask about: alpha (master), beta, and gamma, which is offline."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from common.errors import GntError, Unreachable
from common.model.backing import FileBacking
from common.model.cluster import Cluster
from common.model.disk import Disk
from common.model.group import Group
from common.model.instance import AdminState, Instance
from common.model.job import Failure, Job, LogEntry, OperationRecord, Status
from common.model.nic import Nic
from common.model.node import Node
from common.model.pool import Pool
from common.model.pool_kind import PoolKind
from common.model.stamp import Stamp
from common.model.stored import Stored
from common.model.template import DiskTemplate
from common.names import (
    ClusterId,
    ClusterName,
    DiskId,
    GroupId,
    GroupName,
    InstanceId,
    InstanceName,
    JobId,
    MiB,
    NicId,
    NodeId,
    NodeName,
)
from common.noderpc.disks import DiskReport
from common.noderpc.facts import Facts, NodeFacts, StorageReport
from common.noderpc.instances import GuestReport, GuestState, Instances
from common.noderpc.mirrors import MirrorReport
from common.noderpc.operating_systems import DefinitionReport
from common.noderpc.providers import ProviderReport
from common.rpc.envelope import answer
from common.rpc.server import Reply
from coordinator.locks.names import Level, LockName, Mode, Owner
from coordinator.locks.report import LockRow
from coordinator.nodes.heard import Heard
from coordinator.queries.live import Answers, Specs
from coordinator.queries.source import Source
from coordinator.state.state import State, state_of

T = TypeVar("T")

GROUP = GroupId("00000000-0000-4000-8000-00000000000a")
STORAGE = "/srv/shared"
POOL = Pool(kind=PoolKind.DIRECTORY, name=STORAGE)


def uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012x}"


def node(number: int, name: str, *, candidate: bool = True, offline: bool = False) -> Node:
    return Node(
        uuid=NodeId(uuid(number)), name=NodeName(name), primary_ip=f"192.0.2.{number}", group=GROUP,
        master_candidate=candidate, offline=offline, ctime=1e9, mtime=1e9,
    )  # fmt: skip


ALPHA, BETA = node(1, "alpha"), node(2, "beta")
GAMMA = node(3, "gamma", candidate=False, offline=True)


def instance(
    number: int, name: str, on: Node, wanted: AdminState, disks: int = 1, nics: int = 1
) -> tuple[Stored, ...]:
    made = Instance(
        uuid=InstanceId(uuid(100 + number)), name=InstanceName(name), primary_node=on.uuid,
        admin_state=wanted, hypervisor="kvm", disk_template=DiskTemplate.SHAREDFILE,
        disks=tuple(DiskId(uuid(10 * number + 1000 + index)) for index in range(disks)),
        nics=tuple(NicId(uuid(10 * number + 2000 + index)) for index in range(nics)),
        beparams={"maxmem": 256}, hvparams={"kernel_path": "/boot/vmlinuz"}, ctime=1e9, mtime=1e9,
        tags=("db",) if disks == 2 else (),
    )  # fmt: skip
    return (
        made,
        *(
            Disk(
                uuid=disk,
                size=MiB(64 * (index + 1)),
                backing=FileBacking(path=f"{STORAGE}/{disk}", shared=True),
            )
            for index, disk in enumerate(made.disks)
        ),
        *(Nic(uuid=nic, mac=f"aa:00:00:00:00:{number:02x}", ip="") for nic in made.nics),
    )


CLUSTER = Cluster(
    uuid=ClusterId(uuid(99)), name=ClusterName("test"), master=ALPHA.uuid,
    shared_file_storage_dir=STORAGE, ctime=1e9, mtime=1e9,
)  # fmt: skip
JOBS = (
    Job(
        id=JobId(1), received=10.25, started=11.0, ended=12.0, archived=True,
        ops=(OperationRecord(input={"OP_ID": "OP_TEST_DELAY"}, summary="TEST_DELAY(1)",
                             status=Status.SUCCESS, result=None),),
    ),
    Job(
        id=JobId(2), received=20.5, started=21.0, ended=22.0,
        ops=(OperationRecord(
            input={"OP_ID": "OP_NODE_ADD", "node_name": "delta", "token": "gantry-join.x"},
            secret=("token",), summary="NODE_ADD(delta)", status=Status.ERROR,
            failure=Failure(code="conflict", message="It is there.", detail={"node": "delta"}),
            log=(LogEntry(serial=1, time=21.5, message="looking"),),
        ),),
    ),
    Job(id=JobId(3), received=30.0,
        ops=(OperationRecord(input={"OP_ID": "OP_TEST_DELAY"}, summary="TEST_DELAY(9)",
                             priority=-10),)),
)  # fmt: skip
STATE = state_of(
    (
        CLUSTER,
        Group(uuid=GROUP, name=GroupName("default")),
        ALPHA, BETA, GAMMA,
        *instance(1, "db1.example.com", ALPHA, AdminState.UP, disks=2),
        *instance(2, "mail", GAMMA, AdminState.UP),
        *instance(3, "web1.example.com", BETA, AdminState.UP),
        *instance(4, "web2.example.com", BETA, AdminState.DOWN, nics=0),
        *JOBS,
    ),
    Stamp(),
)  # fmt: skip


def guest(number: int, name: str, state: GuestState = GuestState.RUNNING) -> GuestReport:
    return GuestReport(
        id=InstanceId(uuid(100 + number)), name=InstanceName(name), state=state, memory=MiB(256),
        vcpus=2,
    )  # fmt: skip


def facts(name: str) -> NodeFacts:
    return NodeFacts(
        name=NodeName(name), version="1", boot_id="b", clock=0.0, memory_total=MiB(4096),
        memory_free=MiB(2048), memory_dom0=MiB(512), cpus=4, cpu_sockets=1, cpu_nodes=1,
        storage=(StorageReport(pool=POOL, total=MiB(10240), free=MiB(5120), usable=True),),
    )  # fmt: skip


class RecordedAsker:
    """Answers as told, and remembers what it was asked."""

    def __init__(self, *, dead: Iterable[Node] = ()) -> None:
        self.dead = frozenset(n.uuid for n in dead)
        self.asked: list[tuple[str, list[str]]] = []
        self.running: dict[str, tuple[GuestReport, ...]] = {
            ALPHA.uuid: (guest(1, "db1.example.com"),),
            BETA.uuid: (guest(3, "web1.example.com"),),
        }

    async def guests(self, nodes: Iterable[Node]) -> Answers[tuple[GuestReport, ...]]:
        chosen = list(nodes)
        self.asked.append(("guests", [node.name for node in chosen]))
        return {n.uuid: self._or_dead(n, self.running.get(n.uuid, ())) for n in chosen}

    async def definitions(self, nodes: Iterable[Node]) -> Answers[tuple[DefinitionReport, ...]]:
        chosen = list(nodes)
        self.asked.append(("definitions", [node.name for node in chosen]))
        noop = DefinitionReport(name="noop", path="/srv/os/noop", api_versions=(10,))
        return {n.uuid: self._or_dead(n, (noop,)) for n in chosen}

    async def providers(self, nodes: Iterable[Node]) -> Answers[tuple[ProviderReport, ...]]:
        chosen = list(nodes)
        self.asked.append(("providers", [node.name for node in chosen]))
        shelf = ProviderReport(name="shelf", path="/usr/share/ganeti/extstorage/shelf")
        return {n.uuid: self._or_dead(n, (shelf,)) for n in chosen}

    async def exports(self, nodes: Iterable[Node]) -> Answers[tuple[str, ...]]:
        chosen = list(nodes)
        self.asked.append(("exports", [node.name for node in chosen]))
        return {n.uuid: self._or_dead(n, (f"of-{n.name}",)) for n in chosen}

    async def disks(
        self, disks: Sequence[tuple[Node, Specs]]
    ) -> Answers[tuple[DiskReport | None, ...]]:
        self.asked.append(("disks", [node.name for node, _ in disks]))
        return {n.uuid: self._or_dead(n, (None,) * len(specs)) for n, specs in disks}

    async def facts(
        self, nodes: Iterable[Node], *, storage: tuple[Pool, ...]
    ) -> Answers[NodeFacts]:
        assert storage == (POOL,)
        chosen = list(nodes)
        self.asked.append(("facts", [node.name for node in chosen]))
        return {n.uuid: self._or_dead(n, facts(n.name)) for n in chosen}

    async def mirrors(
        self, disks: Sequence[tuple[Node, Specs]]
    ) -> Answers[tuple[MirrorReport | None, ...]]:
        self.asked.append(("mirrors", [node.name for node, _ in disks]))
        return {n.uuid: self._or_dead(n, (None,) * len(specs)) for n, specs in disks}

    def _or_dead(self, node: Node, answer: T) -> T | GntError:
        return Unreachable("gone") if node.uuid in self.dead else answer


LOCKS = (
    LockRow(
        name=LockName(Level.INSTANCE, "web1.example.com"), mode=Mode.EXCLUSIVE,
        owners=(Owner("job 2"),), pending=((Owner("job 3"), Mode.SHARED),),
    ),
    LockRow(name=LockName(Level.NODE, "beta"), mode=None, owners=(), pending=()),
)  # fmt: skip


def told_at(asked_s: float, *told_by: Node) -> Heard:
    """Return what is remembered when some nodes told all they know, so long ago."""
    heard, asker = Heard(), RecordedAsker()
    for node in told_by:
        guests = Reply(200, answer(asker.running[node.uuid]))
        heard.note(node.uuid, Instances.calls["guests"], asked_s, guests)
        heard.note(node.uuid, Facts.calls["facts"], asked_s, Reply(200, answer(facts(node.name))))
    return heard


def source(
    asker: RecordedAsker | None = None, heard: Heard | None = None, state: State = STATE
) -> Source:
    return Source(
        state=state, asker=asker or RecordedAsker(), heard=heard or Heard(),
        locks=lambda: LOCKS, waits=lambda _: "a place",
    )  # fmt: skip
