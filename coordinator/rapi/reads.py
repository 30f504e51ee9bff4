"""What is read: from the copy where it has it, else from the coordinator."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from common.exposition import exposition
from common.luxi.failures import JobLost
from common.process_figures import process_figures
from coordinator.rapi.call import BAD, Call
from coordinator.rapi.conditions import sum_of
from coordinator.rapi.copy import Copy
from coordinator.rapi.failures import refused
from coordinator.rapi.fields import CLUSTER, FIELDS, JOB, NODE
from coordinator.rapi.inside import Inside, inside_figures
from coordinator.rapi.luxi import Luxi
from coordinator.rapi.metrics import cluster_figures, own_figures

RAPI_VERSION = 2
FEATURES = (
    "instance-create-reqv1", "instance-reinstall-reqv1", "node-evac-res1", "node-migrate-reqv1",
)  # fmt: skip
WAIT_S = 10.0  # for a job to change
SEEN_S = 4.0  # until what a job did is told
ENDS = frozenset({"success", "error", "canceled"})
ROLES = {
    "M": "master", "C": "master-candidate", "D": "drained", "O": "offline", "R": "regular",
}  # fmt: skip
ALIASES = {"volume_group_name": "vg_name", "drbd_usermode_helper": "drbd_helper"}


@dataclass(frozen=True, slots=True)
class Sources:
    """Where answers come from."""

    copy: Copy
    luxi: Luxi
    inside: Inside
    now: Callable[[], float] = time.time


class Told(NamedTuple):
    """Text as it is sent, and which version of it this is."""

    text: bytes
    version: str


Read = Callable[[Call, Sources], Awaitable[Any]]  # returns a JSON value, or this


async def nothing(_: Call, __: Sources) -> None:
    """Answer as Ganeti does where there is nothing to be read."""


async def version(_: Call, __: Sources) -> int:
    """Return the version of the interface."""
    return RAPI_VERSION


async def features(_: Call, __: Sources) -> list[str]:
    """Return which optional parts of the interface there are."""
    return list(FEATURES)


async def info(_: Call, sources: Sources) -> dict[str, Any]:
    """Return all about the cluster itself."""
    (row,) = sources.copy.tables[CLUSTER].rows.values()
    values: dict[str, Any] = row.values()
    return values | {alias: values[name] for name, alias in ALIASES.items()}


async def metrics(_: Call, sources: Sources) -> Told:
    """Return figures for Prometheus; those of the cluster where the coordinator is, alone."""
    copy = sources.copy
    figures = list(own_figures(copy.age_s if copy.is_whole else None))
    if copy.is_whole:
        figures += cluster_figures(copy.tables, sources.now())
        if sources.inside.figures is not None:
            figures += inside_figures(sources.inside.figures)
    text = exposition((*figures, *process_figures()))
    return Told(text, sum_of(text))


def listing(kind: str, path: str, key: str = "name") -> Read:
    """Have all objects of a kind listed: names and addresses, or with ``bulk`` what they are."""

    async def read(call: Call, sources: Sources) -> Any:
        table = sources.copy.tables[kind]
        if call.flag("bulk"):
            return Told(table.joined(), f"{table.revision:x}")
        keys = sorted(table.rows) if kind == JOB else sorted(row.name for row in table.in_order())
        return [{key: each, "uri": f"{path}/{each}"} for each in keys]

    return read


def single(kind: str, name: str) -> Read:
    """Have one object told of."""

    async def read(call: Call, sources: Sources) -> Any:
        row = sources.copy.find(kind, call.named[name])
        return Told(row.text, row.version)

    return read


async def node(call: Call, sources: Sources) -> Told:
    """Return all about a node."""
    row = sources.copy.find(NODE, call.named["node_name"])
    values = row.values()
    text = msgspec.json.encode(values | {"secondary_ip": values["sip"]})
    return Told(text, row.version)


async def role(call: Call, sources: Sources) -> str:
    """Return what a node is for."""
    return ROLES[sources.copy.find(NODE, call.named["node_name"]).values()["role"]]


def tags(kind: str) -> Read:
    """Have the tags of an object told."""

    async def read(call: Call, sources: Sources) -> Any:
        if kind == CLUSTER:
            (row,) = sources.copy.tables[CLUSTER].rows.values()
        else:
            row = sources.copy.find(kind, call.named["name"])
        return row.values()["tags"]

    return read


async def job(call: Call, sources: Sources) -> Any:
    """Return how a job is, archived or not."""
    number = int(call.named["job"])
    if (row := sources.copy.job(number)) is not None:
        return Told(row.text, row.version)
    (values,) = await sources.luxi.call("QueryJobs", [number], FIELDS[JOB])
    if values is None:
        raise JobLost(f"There is no job {number}.", job=number)
    told = dict(zip(FIELDS[JOB], values, strict=True))
    await _until_seen(number, told["status"], sources)
    return told


async def job_change(call: Call, sources: Sources) -> Any:
    """Wait until a job is otherwise than it was, for some seconds."""
    if "fields" not in call.members():
        raise refused(BAD, "Required parameter 'fields' is missing")
    fields = call.member("fields", list, None)
    before = call.member("previous_job_info", list, None)
    serial = call.member("previous_log_serial", int, None)
    number = int(call.named["job"])
    try:
        async with asyncio.timeout(WAIT_S):
            while True:
                seen = sources.copy.job(number)
                told = await sources.luxi.call(
                    "WaitForJobChange", number, fields, before, serial, 0
                )
                if told != "nochange":
                    values, entries = told
                    now = dict(zip(fields, values, strict=True))
                    await _until_seen(number, now.get("status"), sources)
                    return {"job_info": values, "log_entries": entries}
                while sources.copy.job(number) is seen:  # it costs the coordinator nothing
                    await sources.copy.changed()
    except TimeoutError:
        return None


async def _until_seen(number: int, status: Any, sources: Sources) -> None:
    """Wait, before the end of a job is told, until what it did can be read, too."""
    if status not in ENDS:
        return
    with suppress(TimeoutError):
        async with asyncio.timeout(SEEN_S):
            while not sources.copy.has_seen_end(number):
                await sources.copy.changed()
