"""What is told Prometheus of the cluster, from the copy of its lists; pure.

Figures are by states and by nodes, not by instances or jobs: as many with ten thousand of them.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

import msgspec

from common.exposition import Family, Figures, Kind, single
from common.messages import Report
from common.version import VERSION
from coordinator.queries.instance_status import InstanceStatus
from coordinator.rapi.copy import Table
from coordinator.rapi.fields import CLUSTER, INSTANCE, JOB, NODE

T = TypeVar("T", bound=Report)

_MIB = 1 << 20
_UNDER_WAY = ("queued", "waiting", "running")
_ROLES = {
    "M": "master", "C": "candidate", "R": "regular", "D": "drained", "O": "offline",
}  # fmt: skip
_NODE = ("node",)

# fmt: off
_INFO = Family("gantry_rapi_info", Kind.GAUGE, "Always 1; the version of the REST interface.",
               ("version",))
_WHOLE = Family("gantry_rapi_is_up_to_date", Kind.GAUGE,
                "Whether the coordinator is here and tells of changes; 1 on the master alone.")
_AGE = Family("gantry_rapi_age_seconds", Kind.GAUGE, "How long ago nodes were looked at.")
_CLUSTER = Family("gantry_cluster_info", Kind.GAUGE, "Always 1; the cluster and its master.",
                  ("cluster", "master"))
_INSTANCES = Family("gantry_cluster_instances", Kind.GAUGE, "Instances, by their status.",
                    ("status",))
_NODES = Family("gantry_cluster_nodes", Kind.GAUGE, "Nodes, by what they are for.", ("role",))
_ANSWERS = Family("gantry_cluster_node_answers", Kind.GAUGE,
                  "Whether a node that is not marked offline answered when asked last.", _NODE)
_JOBS = Family("gantry_cluster_jobs", Kind.GAUGE,
               "Jobs that are not archived, by their status and first operation.",
               ("status", "opcode"))
_OLDEST = Family("gantry_cluster_oldest_job_seconds", Kind.GAUGE,
                 "Age of the job submitted first of those under way; 0 if there are none.",
                 ("status",))
# fmt: on


class _Node(Report):
    name: str
    role: str
    mtotal: float | None = None
    mfree: float | None = None
    mnode: float | None = None
    dtotal: float | None = None
    dfree: float | None = None
    ctotal: float | None = None
    pinst_cnt: int | None = None
    sinst_cnt: int | None = None


class _Instance(Report):
    status: str


class _Op(Report):
    opcode: str = msgspec.field(name="OP_ID", default="")


class _Job(Report):
    status: str
    ops: list[_Op] = []
    received_ts: tuple[int, int] | None = None  # seconds and microseconds


class _Cluster(Report):
    name: str = ""
    master: str = ""


def _gauge(name: str, doc: str) -> Family:
    return Family(f"gantry_cluster_node_{name}", Kind.GAUGE, doc, _NODE)


_OF_NODES: tuple[tuple[Family, Callable[[_Node], float | None]], ...] = (
    (_gauge("memory_bytes", "Memory of a node."), lambda node: _bytes(node.mtotal)),
    (_gauge("memory_free_bytes", "Memory that is free."), lambda node: _bytes(node.mfree)),
    (_gauge("memory_own_bytes", "Memory that the node itself uses."), lambda n: _bytes(n.mnode)),
    (_gauge("disk_bytes", "Space for disks of instances."), lambda node: _bytes(node.dtotal)),
    (_gauge("disk_free_bytes", "Space that is free."), lambda node: _bytes(node.dfree)),
    (_gauge("processors", "Processors of a node."), lambda node: node.ctotal),
    (_gauge("primaries", "Instances that are to run there."), lambda node: node.pinst_cnt),
    (_gauge("secondaries", "Instances whose disks are copied there."), lambda n: n.sinst_cnt),
)


def own_figures(age_s: float | None) -> Iterator[Figures]:
    """Yield what is told everywhere, master or not.

    Args:
        age_s: how long ago nodes were looked at; None if the copy is not kept up to date here.
    """
    yield _INFO, {(VERSION,): 1}
    yield single(_WHOLE, age_s is not None)
    yield single(_AGE, age_s)


def cluster_figures(tables: Mapping[str, Table], now_s: float) -> Iterator[Figures]:
    """Yield all figures of the cluster.

    Args:
        tables: by kind; without any rows if nothing is known of the cluster.
        now_s: seconds since 1970.
    """
    yield _CLUSTER, {(one.name, one.master): 1 for one in _read(tables[CLUSTER], _Cluster)}
    yield from _of_instances(
        _read(tables[INSTANCE], _Instance), is_known=bool(tables[CLUSTER].rows)
    )
    yield from _of_nodes(list(_read(tables[NODE], _Node)))
    yield from _of_jobs(list(_read(tables[JOB], _Job)), now_s)


def _read(table: Table, kind: type[T]) -> Iterator[T]:
    decoder = msgspec.json.Decoder(kind)
    return (decoder.decode(row.text) for row in table.rows.values())


def _of_instances(instances: Iterable[_Instance], *, is_known: bool) -> Iterator[Figures]:
    by_status = Counter(one.status for one in instances)
    # Those that no instance has are told, too, so that an alert sees where a figure came from.
    names = {*InstanceStatus, *by_status} if is_known else set()
    yield _INSTANCES, {(str(status),): by_status[status] for status in names}


def _of_nodes(nodes: list[_Node]) -> Iterator[Figures]:
    by_role = Counter(_ROLES.get(node.role, node.role) for node in nodes)
    roles = {*_ROLES.values(), *by_role} if nodes else set()
    yield _NODES, {(role,): by_role[role] for role in roles}
    online = [node for node in nodes if node.role != "O"]
    yield _ANSWERS, {(node.name,): int(node.mtotal is not None) for node in online}
    for family, get in _OF_NODES:
        yield (
            family,
            {(node.name,): value for node in nodes if (value := get(node)) is not None},
        )


def _of_jobs(jobs: list[_Job], now_s: float) -> Iterator[Figures]:
    counted: Counter[tuple[str, ...]] = Counter(
        (job.status, job.ops[0].opcode if job.ops else "") for job in jobs
    )
    yield _JOBS, counted
    ages = dict.fromkeys(_UNDER_WAY, 0.0)
    for job in jobs:
        if job.status in ages and job.received_ts:
            seconds, microseconds = job.received_ts
            age_s = now_s - seconds - microseconds / 1e6
            ages[job.status] = max(ages[job.status], age_s)
    yield _OLDEST, {(status,): age_s for status, age_s in ages.items()}


def _bytes(size_mib: float | None) -> float | None:
    return None if size_mib is None else size_mib * _MIB
